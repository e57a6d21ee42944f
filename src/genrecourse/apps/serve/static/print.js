// The button of a plan's own page: the browser prints it, or saves it as PDF.
"use strict";
const button = document.getElementById("print");
button.closest(".print-go").hidden = false;
button.addEventListener("click", () => window.print());
