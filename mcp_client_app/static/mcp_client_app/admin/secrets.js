/* Editors of secrets: adds rows, and shows the box for a value where one is wanted.
   Without it, three empty rows are there. */
"use strict";
{
  function editSecrets(editor) {
    const add = editor.querySelector("[data-mcp-add]");
    const empty = editor.querySelectorAll("[data-mcp-empty]");
    const pattern = empty[0].cloneNode(true);
    empty.forEach((row) => row.remove());
    add.hidden = false;
    add.addEventListener("click", function () {
      const row = pattern.cloneNode(true);
      add.before(row);
      row.querySelector("input").focus();
    });
    for (const select of editor.querySelectorAll("select")) {
      const value = select.parentElement.querySelector("input[type=password]");
      const show = function () {
        value.hidden = select.value === "keep" || select.value === "remove";
        if (value.hidden) {
          value.value = "";
        }
      };
      select.addEventListener("change", show);
      show();
    }
  }

  document.addEventListener("DOMContentLoaded", function () {
    // The pattern from which further inlines are made stays as it is.
    document.querySelectorAll("[data-mcp-secrets]").forEach(function (editor) {
      if (!editor.closest(".empty-form")) {
        editSecrets(editor);
      }
    });
  });
  document.addEventListener("formset:added", function (event) {
    event.target.querySelectorAll("[data-mcp-secrets]").forEach(editSecrets);
  });
}
