// The text that an element of the page holds packed: DEFLATE in base64. Browsers' own unpacking lets others go first, and who prints a page as
// soon as it is there would print it without charts; fflate does it at once.
const llmparityUnpack = (id) => {
  const { textContent, dataset } = document.getElementById(id);
  const packed = Uint8Array.from(atob(textContent), (c) => c.charCodeAt(0));
  return fflate.strFromU8(fflate.inflateSync(packed, { out: new Uint8Array(Number(dataset.bytes)) }));
};
