// Unpacks what the page holds packed: DEFLATE (RFC 1951) in base64. Browsers' own unpacking lets others go first, and who prints a page
// as soon as it is there would print it without charts; this is done at once.
const llmparityUnpack = (() => {
  "use strict";
  const clen = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15]; // the order in which codes of lengths come
  const more = (n) => (n < 8 || n === 28 ? 0 : (n >> 2) - 1); // bits behind a length's code, of which n is the number
  const far = (n) => (n < 4 ? 0 : (n >> 1) - 1); // and behind a distance's
  const begins = (first, bits, count) => Array.from({ length: count }, (_, n) => { const at = first; first += 1 << bits(n); return at; });
  const lengths = begins(3, more, 28).concat(258), distances = begins(1, far, 30);

  // codes are symbols by the next bits: a symbol, and in the lowest four bits how many bits it takes.
  function codes(sizes) {
    const most = Math.max(...sizes), table = new Uint16Array(1 << most);
    for (let n = 1, code = 0; n <= most; n++, code <<= 1) {
      sizes.forEach((size, symbol) => {
        if (size !== n) return;
        let turned = 0;
        for (let i = 0; i < n; i++) turned |= ((code >> i) & 1) << (n - 1 - i);
        for (; turned < table.length; turned += 1 << n) table[turned] = symbol << 4 | n;
        code++;
      });
    }
    return { mask: table.length - 1, table };
  }

  function inflate(packed, size) {
    const out = new Uint8Array(size);
    let at = 0, hold = 0, held = 0, end = 0;
    const fill = () => { for (; held <= 24; held += 8) hold |= packed[at++] << held; };
    const drop = (n) => { hold >>>= n; held -= n; };
    const bits = (n) => { fill(); const v = hold & ((1 << n) - 1); drop(n); return v; };
    const next = ({ mask, table }) => { fill(); const found = table[hold & mask]; drop(found & 15); return found >> 4; };

    function stored() {
      drop(held & 7);
      const n = bits(16);
      bits(16);
      at -= held >> 3;
      hold = held = 0;
      out.set(packed.subarray(at, at + n), end);
      at += n;
      end += n;
    }

    const fixed = () => [codes(Array.from({ length: 288 }, (_, n) => (n < 144 ? 8 : n < 256 ? 9 : n < 280 ? 7 : 8))), codes(Array(30).fill(5))];

    function told() {
      const literals = bits(5) + 257, all = literals + bits(5) + 1, orders = bits(4) + 4, of = Array(19).fill(0), sizes = [];
      for (let i = 0; i < orders; i++) of[clen[i]] = bits(3);
      const by = codes(of);
      while (sizes.length < all) {
        const symbol = next(by);
        if (symbol < 16) { sizes.push(symbol); continue; }
        const again = symbol === 16 ? sizes[sizes.length - 1] : 0, times = symbol === 16 ? 3 + bits(2) : symbol === 17 ? 3 + bits(3) : 11 + bits(7);
        for (let i = 0; i < times; i++) sizes.push(again);
      }
      return [codes(sizes.slice(0, literals)), codes(sizes.slice(literals))];
    }

    function block(literal, distance) {
      for (let symbol = next(literal); symbol !== 256; symbol = next(literal)) {
        if (end >= size) throw new Error("what is packed in this page is not whole");
        if (symbol < 256) { out[end++] = symbol; continue; }
        const n = lengths[symbol - 257] + bits(more(symbol - 257)), code = next(distance), back = distances[code] + bits(far(code));
        for (const stop = end + n; end < stop; end++) out[end] = out[end - back];
      }
    }

    for (let last = false; !last;) {
      last = bits(1) === 1;
      const kind = bits(2);
      if (kind === 0) stored(); else block(...(kind === 1 ? fixed() : told()));
    }
    return out;
  }

  // The text that an element of the page holds packed.
  return (id) => {
    const { textContent, dataset } = document.getElementById(id);
    const packed = Uint8Array.from(atob(textContent), (c) => c.charCodeAt(0));
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(inflate(packed, Number(dataset.bytes)));
  };
})();
