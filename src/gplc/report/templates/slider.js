"use strict";
// Draws the density at the place the slider points to. All numbers are in the page already.
(function () {
  const inputs = JSON.parse(document.getElementById("densities").textContent);
  const choice = document.getElementById("input-choice");
  const slider = document.getElementById("place");
  const shown = document.getElementById("place-value");
  const words = document.getElementById("shape-words");
  const density = document.getElementById("density-curve");
  const gaussian = document.getElementById("gaussian-curve");
  const ticks = document.getElementById("shape-ticks");
  const LEFT = 15, RIGHT = 625, BASE = 250, TOP = 20;
  const short = (value) => String(Number(value.toPrecision(4)));
  const named = (value) => typeof value === "string" ? value : short(value);  // a level

  function axis(low, high) {
    const across = (y) => LEFT + (RIGHT - LEFT) * (y - low) / (high - low);
    const rough = (high - low) / 7;
    const power = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
    const marks = [];
    for (let k = Math.ceil(low / step); k * step <= high; k += 1) {
      const at = across(k * step).toFixed(1);
      marks.push(`<line class="axis" x1="${at}" x2="${at}" y1="${BASE}" y2="${BASE + 6}"/>` +
        `<text x="${at}" y="${BASE + 26}" text-anchor="middle">${short(k * step)}</text>`);
    }
    ticks.innerHTML = marks.join("");
    return across;
  }

  function draw() {
    const input = inputs[choice ? choice.selectedIndex : 0];
    slider.max = input.places.length - 1;
    const place = input.places[Number(slider.value)];
    const across = axis(input.low, input.high);
    const highest = Math.max(...place.density, ...place.gaussian);
    const up = (value) => BASE - (BASE - TOP) * value / highest;
    const path = (values) => place.y.map((y, k) =>
      `${k ? "L" : "M"}${across(y).toFixed(1)} ${up(values[k]).toFixed(1)}`).join("");
    density.setAttribute("d", path(place.density));
    gaussian.setAttribute("d", path(place.gaussian));
    shown.textContent = named(place.at);
    slider.setAttribute("aria-valuetext", `${input.name} ${named(place.at)}`);
    words.textContent = `At ${input.name} = ${named(place.at)}: mean ${short(place.mean)}, ` +
      `SD ${short(place.sd)}, 90% between ${short(place.lower)} and ${short(place.upper)}, ` +
      `skewness ${place.skewness.toFixed(2)}.` +
      (place.near ? "" : " There are no data near this place.");
  }

  slider.addEventListener("input", draw);
  if (choice) {
    choice.addEventListener("change", function () {
      slider.value = Math.floor((inputs[choice.selectedIndex].places.length - 1) / 2);
      draw();
    });
  }
  draw();
}());
