/* The form of a server: shows what the chosen transport needs. Without it, everything is visible. */
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

  document.addEventListener("DOMContentLoaded", function () {
    const transport = document.getElementById("id_transport");
    if (transport) {
      followTransport(transport);
    }
  });
}
