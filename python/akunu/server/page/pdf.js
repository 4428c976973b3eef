// The text of a PDF, by PDF.js, which reads it in a thread of its own and runs none of its scripts.

import * as pdfjs from "./vendor/pdf.js";

pdfjs.GlobalWorkerOptions.workerSrc = new URL("./vendor/pdf.worker.js", import.meta.url).href;

/** The text of a PDF's pages, until there are more than `most` characters. */
export async function pdfText(data, most) {
  const task = pdfjs.getDocument({ data, isEvalSupported: false, enableXfa: false, disableFontFace: true, verbosity: 0 });
  try {
    const found = await task.promise;
    const pages = [];
    let length = 0;
    for (let number = 1; number <= found.numPages && length <= most; number += 1) {
      const page = await found.getPage(number);
      const { items } = await page.getTextContent();
      const text = items.map(({ str = "", hasEOL }) => (hasEOL ? `${str}\n` : str)).join("").trim();
      length += text.length;
      if (text) pages.push(text);
      page.cleanup();
    }
    if (!pages.length) throw new Error("has no text; it may be a scan");
    return pages.join("\n\n");
  } catch (error) {
    if (error.name === "PasswordException") throw new Error("is protected by a password");
    if (error.name === "InvalidPDFException") throw new Error("is no PDF that can be read");
    throw error;
  } finally {
    await task.destroy();
  }
}
