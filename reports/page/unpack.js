// The text that an element of the page holds packed: DEFLATE in base64. fflate unpacks it at once; browsers' own unpacking is asynchronous, and a page
// printed as soon as it loads would have no charts.
const llmparityUnpack = (id) => {
  const { textContent, dataset } = document.getElementById(id);
  const packed = Uint8Array.from(atob(textContent), (c) => c.charCodeAt(0));
  return fflate.strFromU8(fflate.inflateSync(packed, { out: new Uint8Array(Number(dataset.bytes)) }));
};
{
  const library = document.createElement("script"); // the page's policy knows its hash
  library.textContent = llmparityUnpack("echarts");
  document.head.append(library);
}
