// Documents: JSON written and read again.
function run() {
  const items = [];
  for (let i = 0; i < 250; i++) {
    items.push({ id: i, name: `item ${i}`, tags: [`a${i % 7}`, "b"], size: [i, i * 2, { deep: i % 3 === 0 }] });
  }
  let total = 0;
  for (let round = 0; round < 3; round++) {
    const text = JSON.stringify({ items, version: 2 });
    const back = JSON.parse(text);
    total += text.length;
    for (const item of back.items) {
      total += item.size[2].deep ? item.size[1] : 0;
    }
  }
  return total;
}
