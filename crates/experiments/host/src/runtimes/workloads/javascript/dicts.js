// Dictionaries: counts and links of words, with strings as keys.
function run() {
  let number = 7;
  const counts = new Map();
  const followers = new Map();
  let before = "start";
  for (let round = 0; round < 4000; round++) {
    number = (Math.imul(number, 1103515245) + 12345) & 0x7fffffff;
    const word = "w" + String((number >> 12) % 700);
    counts.set(word, (counts.get(word) || 0) + 1);
    if (followers.has(before)) {
      followers.get(before).set(word, true);
    } else {
      followers.set(before, new Map([[word, true]]));
    }
    before = word;
  }
  let most = 0;
  for (const count of counts.values()) {
    most = Math.max(most, count);
  }
  let links = 0;
  for (const words of followers.values()) {
    links += words.size;
  }
  return most * 1000000 + links * 10 + counts.size;
}
