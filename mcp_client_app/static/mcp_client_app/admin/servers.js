/* The form of a server: shows what the chosen transport needs, and adds rows for secrets.
   Without it, everything is visible and three empty rows are there. */
"use strict";
{
  const KINDS = { stdio: "process", streamable_http: "http", sse: "http", in_process: "in_process" };

  function followTransport(select) {
    const fieldsets = document.querySelectorAll("fieldset[class*='mcp-kind-']");
    const show = function () {
      const wanted = `mcp-kind-${KINDS[select.value]}`;
      for (const fieldset of fieldsets) {
        // A field with an error stays in sight, wherever it is.
        const hide = !fieldset.classList.contains(wanted) && !fieldset.querySelector(".errorlist");
        fieldset.classList.toggle("mcp-kind-hidden", hide);
        // What is hidden is not sent: the server empties it.
        fieldset.disabled = hide;
      }
    };
    select.addEventListener("change", show);
    show();
  }

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
    const transport = document.getElementById("id_transport");
    if (transport) {
      followTransport(transport);
    }
    document.querySelectorAll("[data-mcp-secrets]").forEach(editSecrets);
  });
}
