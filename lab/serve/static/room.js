// The presenter's view: larger, for those who sit behind. The browser's tab remembers it, the server does not.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const button = document.getElementById("room");
  if (!button) return;
  const show = (on) => {
    document.body.classList.toggle("room", on);
    button.setAttribute("aria-pressed", String(on));
    window.dispatchEvent(new Event("resize"));
  };
  show(sessionStorage.getItem("room") === "1");
  button.addEventListener("click", () => {
    const on = !document.body.classList.contains("room");
    sessionStorage.setItem("room", on ? "1" : "0");
    show(on);
  });
});
