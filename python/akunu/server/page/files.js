// Texts that are attached to a message: chosen, dropped or pasted.

const chips = document.getElementById("files");
const MOST = 1 << 20; // characters of one file

let attached = [];

/** What is attached, which then no longer is. */
export function take() {
  const files = attached;
  attached = [];
  draw();
  return files;
}

function draw() {
  chips.hidden = !attached.length;
  chips.replaceChildren(...attached.map((file) => {
    const chip = document.createElement("button");
    chip.type = "button";
    chip.textContent = `${file.name} ×`;
    chip.title = `${file.text.length.toLocaleString("en")} characters; click to leave it out`;
    chip.addEventListener("click", () => { attached = attached.filter((one) => one !== file); draw(); });
    return chip;
  }));
}

/** Attach files; `tell` gets what cannot be attached, and why. */
async function attach(files, tell) {
  for (const file of files) {
    try {
      if (file.size > 4 * MOST) throw new Error("is too large");
      const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
      if (text.includes("\0")) throw new Error("is no text");
      if (text.length > MOST) throw new Error("is too long");
      attached.push({ name: file.name, text });
    } catch (error) {
      const why = error instanceof TypeError ? "is no text in UTF-8 (images and PDFs are not read)" : error.message;
      tell(`${file.name} ${why}.`);
    }
  }
  draw();
}

export function follow(tell) {
  const chosen = document.getElementById("attach-file");
  const composer = document.getElementById("composer");
  const place = document.getElementById("chat");
  document.getElementById("attach").addEventListener("click", () => chosen.click());
  chosen.addEventListener("change", async () => { await attach([...chosen.files], tell); chosen.value = ""; composer.focus(); });
  composer.addEventListener("paste", (event) => {
    if (!event.clipboardData?.files.length) return;
    event.preventDefault();
    attach([...event.clipboardData.files], tell);
  });
  place.addEventListener("dragover", (event) => { if (event.dataTransfer?.types.includes("Files")) event.preventDefault(); });
  place.addEventListener("drop", (event) => {
    if (!event.dataTransfer?.files.length) return;
    event.preventDefault();
    attach([...event.dataTransfer.files], tell);
  });
}
