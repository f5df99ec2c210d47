// Goes through the slides by keys or a click; the address has the number, so that a page loaded again stays there.
"use strict";

const slides = parts(".slide");
const FORWARD = ["ArrowRight", "ArrowDown", "PageDown", " ", "Enter"];
const SMALLEST_PERCENT = 60;
const BACK = ["ArrowLeft", "ArrowUp", "PageUp", "Backspace"];

/** The number in the address; the first one, where there is none. */
const asked = () => Math.min(slides.length, Math.max(1, Number(location.hash.slice(1)) || 1));

/** A slide that is longer than the screen becomes smaller, as long as it can be read. */
function fit(slide) {
  for (let percent = 100; percent >= SMALLEST_PERCENT; percent -= 4) {
    slide.style.fontSize = `${percent}%`;
    if (document.documentElement.scrollHeight <= window.innerHeight) return;
  }
}

function show() {
  slides.forEach((slide, index) => slide.classList.toggle("shown", index + 1 === asked()));
  fit(slides[asked() - 1]);
  window.scrollTo(0, 0);
}

// The browser reports a new address later, at its own time; the key's slide is there at once.
function go(number) {
  location.hash = String(Math.min(slides.length, Math.max(1, number)));
  show();
}

window.addEventListener("hashchange", show);
window.addEventListener("resize", show);
window.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (FORWARD.includes(event.key)) go(asked() + 1);
  else if (BACK.includes(event.key)) go(asked() - 1);
  else if (event.key === "Home") go(1);
  else if (event.key === "End") go(slides.length);
  else return;
  event.preventDefault();
});
document.body.classList.add("presented");
show();
