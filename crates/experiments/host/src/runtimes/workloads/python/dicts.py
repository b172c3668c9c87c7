"""Dictionaries: counts and links of words, with strings as keys."""


def run():
    number = 7
    counts = {}
    followers = {}
    before = "start"
    for _ in range(4000):
        number = (number * 1103515245 + 12345) & 0x7FFFFFFF
        word = "w" + str((number >> 12) % 700)
        counts[word] = counts.get(word, 0) + 1
        if before in followers:
            followers[before][word] = True
        else:
            followers[before] = {word: True}
        before = word
    most = max(counts.values())
    return most * 1000000 + sum(len(links) for links in followers.values()) * 10 + len(counts)
