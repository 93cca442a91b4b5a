// The page of a job, or of fleetd's jobs: draws what the server sends. Everything from a job (names,
// log lines) becomes text, never markup. CMake joins the files of this folder.
"use strict";

const at = (id) => document.getElementById(id);
const kMostPoints = 480, kMostRows = 256, kMostLogLines = 2000;

function element(name, text, kind) {
  const one = document.createElement(name);
  if (text !== undefined && text !== null) one.textContent = text;
  if (kind) one.className = kind;
  return one;
}

function svg(name, attributes) {
  const one = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in attributes) one.setAttribute(key, attributes[key]);
  return one;
}

const known = (value) => value !== null && value !== undefined && Number.isFinite(value);

function short(value) {
  if (!known(value)) return "-";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) return value.toExponential(2);
  return String(Number(value.toPrecision(size >= 1000 ? 6 : 4)));
}

const rounded = (value) => short(known(value) && Math.abs(value) >= 100 ? Math.round(value) : known(value) ? Number(value.toPrecision(3)) : value);

const percent = (share) => known(share) ? String(Math.round(100 * share)) : "-";

function bytes(value) {
  if (!known(value)) return "-";
  const mib = value / 1048576;
  return mib < 1000 ? Math.round(mib) + " M" : (mib / 1024).toFixed(1) + " G";
}

function duration(seconds) {
  if (!known(seconds)) return "-";
  const s = Math.max(0, Math.floor(seconds)), two = (n) => String(n).padStart(2, "0");
  const h = Math.floor(s / 3600), m = Math.floor(s / 60) % 60;
  return h > 0 ? h + ":" + two(m) + ":" + two(s % 60) : m + ":" + two(s % 60);
}

let outcome = null;  // how the job has ended

function ago(seconds) {
  return seconds >= 1 ? "-" + duration(seconds) : outcome ? "end" : "now";
}

function clock(time) {
  return new Date(1000 * time).toLocaleTimeString();
}

function setState(text, kind) {
  at("state").textContent = text;
  at("state").className = "state" + (kind ? " " + kind : "");
}
