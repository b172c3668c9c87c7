// Strings: splitting, joining, replacing and comparing lines of text.
function run() {
  const lines = [];
  for (let i = 0; i < 1500; i++) {
    lines.push(`line ${i}: value=${(i * 37) % 1001}; name=item-${i % 50}`);
  }
  let total = 0;
  for (const line of lines) {
    const at = line.indexOf(": ");
    const head = line.slice(0, at);
    const fields = line.slice(at + 2).split("; ");
    const name = fields[1].split("=")[1].toUpperCase();
    const text = [head.trim(), name, fields[0].replaceAll("value", "v")].join("|");
    if (text.startsWith("line 1") || text.endsWith("7")) {
      total += text.length;
    }
    total += text.split("1").length - 1 + text.indexOf("V");
  }
  return total;
}
