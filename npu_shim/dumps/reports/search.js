"use strict";
const rows = [...document.querySelectorAll("#tensors tbody tr")];
const texts = rows.map((row) => row.textContent.toLowerCase());
const box = document.getElementById("search");
box.addEventListener("input", () => {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  rows.forEach((row, place) => {
    row.hidden = !words.every((word) => texts[place].includes(word));
    found += !row.hidden;
  });
  document.getElementById("found").textContent = words.length ? ` ${found} of ${rows.length} rows` : "";
});
