// What the scripts of every page share: its elements, each of the kind that it must be.
"use strict";

/**
 * The element with an id.
 * @template {HTMLElement} Kind
 * @param {string} id
 * @param {new () => Kind} kind
 * @returns {Kind}
 */
function elementOf(id, kind) {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`the page has no ${kind.name} with the id ${id}`);
  return found;
}

const part = (id) => elementOf(id, HTMLElement);

/**
 * A new element, which stands nowhere yet.
 * @template {keyof HTMLElementTagNameMap} Kind
 * @param {Kind} kind
 */
function make(kind, className = "", text = "") {
  const made = document.createElement(kind);
  made.className = className;
  made.textContent = text;
  return made;
}

/**
 * The elements that a selector finds, in the page or below one of its elements.
 * @param {string} selector
 * @param {ParentNode} [below]
 * @returns {(HTMLElement | SVGElement)[]}
 */
function parts(selector, below = document) {
  const found = [...below.querySelectorAll(selector)];
  return found.filter((one) => one instanceof HTMLElement || one instanceof SVGElement);
}
