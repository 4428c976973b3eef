// Texts, PDFs (of which the text counts) and images that are attached to a message: chosen, dropped or pasted.

const chips = document.getElementById("files");
const MOST = 1 << 20; // characters of one file
const MOST_OF_PDF = 64 << 20; // its bytes
const PIXELS = 1.2e6; // of an image, which a model is shown about a million of; conversations are kept in little room
const SIDE = 2048;

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
    if (file.image) {
      const small = document.createElement("img");
      small.src = file.image;
      small.alt = "";
      chip.append(small);
    }
    chip.append(`${file.name} ×`);
    chip.title = file.image ? "Click to leave it out" : `${file.text.length.toLocaleString("en")} characters; click to leave it out`;
    chip.addEventListener("click", () => { attached = attached.filter((one) => one !== file); draw(); });
    return chip;
  }));
}

/** An image as a URL with the image in it, upright, on white, and no larger than a model is shown it. */
async function shrunk(file) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(file, { imageOrientation: "from-image" });
  } catch {
    throw new Error("is no image that this browser reads");
  }
  const { width, height } = bitmap;
  const scale = Math.min(1, Math.sqrt(PIXELS / (width * height)), SIDE / Math.max(width, height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(width * scale));
  canvas.height = Math.max(1, Math.round(height * scale));
  const context = canvas.getContext("2d");
  context.fillStyle = "white";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.imageSmoothingQuality = "high";
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  bitmap.close();
  const [png, jpeg] = [canvas.toDataURL("image/png"), canvas.toDataURL("image/jpeg", 0.88)];
  return png.length <= jpeg.length ? png : jpeg;
}

/** Attach files; `tell` gets what cannot be attached, and why. */
async function attach(files, tell, readsImages) {
  for (const file of files) {
    try {
      if (file.type.startsWith("image/") && file.type !== "image/svg+xml") {
        if (!readsImages()) throw new Error("is an image, and this model reads text only");
        attached.push({ name: file.name, image: await shrunk(file) });
        continue;
      }
      if (file.type === "application/pdf" || /\.pdf$/i.test(file.name)) {
        if (file.size > MOST_OF_PDF) throw new Error("is too large");
        const { pdfText } = await import("./pdf.js");
        const text = await pdfText(new Uint8Array(await file.arrayBuffer()), MOST);
        if (text.length > MOST) throw new Error("is too long");
        attached.push({ name: file.name, text });
        continue;
      }
      if (file.size > 4 * MOST) throw new Error("is too large");
      const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
      if (text.includes("\0")) throw new Error("is no text");
      if (text.length > MOST) throw new Error("is too long");
      attached.push({ name: file.name, text });
    } catch (error) {
      const why = error instanceof TypeError ? "is neither an image nor a PDF nor a text in UTF-8" : error.message;
      tell(`${file.name} ${why}.`);
    }
  }
  draw();
}

/** Attach what is chosen, pasted and dropped; `readsImages` says whether the model does. */
export function follow(tell, readsImages) {
  const chosen = document.getElementById("attach-file");
  const composer = document.getElementById("composer");
  const place = document.getElementById("chat");
  document.getElementById("attach").addEventListener("click", () => chosen.click());
  chosen.addEventListener("change", async () => { await attach([...chosen.files], tell, readsImages); chosen.value = ""; composer.focus(); });
  composer.addEventListener("paste", (event) => {
    if (!event.clipboardData?.files.length) return;
    event.preventDefault();
    attach([...event.clipboardData.files], tell, readsImages);
  });
  place.addEventListener("dragover", (event) => { if (event.dataTransfer?.types.includes("Files")) event.preventDefault(); });
  place.addEventListener("drop", (event) => {
    if (!event.dataTransfer?.files.length) return;
    event.preventDefault();
    attach([...event.dataTransfer.files], tell, readsImages);
  });
}
