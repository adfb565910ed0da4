"""``python -m gplc`` is the command line."""

from gplc.cli import main

if __name__ == "__main__":
    main()
