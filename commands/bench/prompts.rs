//! Prompts that are new to every server and the same for every one: random tokens, or random words.

use mettle::engine::Sampling;

/// Short words that are one token each, with the space before them, in most vocabularies.
const WORDS: [&str; 32] = [
    "time", "year", "people", "way", "day", "man", "thing", "woman", "life", "child", "world", "school", "state",
    "family", "student", "group", "country", "problem", "hand", "part", "place", "case", "week", "company", "system",
    "program", "question", "work", "number", "night", "point", "home",
];

/// `length` tokens from the middle of a vocabulary, away from both ends, where special tokens are.
pub fn ids(seed: u64, length: usize, vocabulary: usize) -> Vec<u32> {
    let first = vocabulary / 4;
    random(seed, vocabulary / 2).take(length).map(|index| (first + index) as u32).collect()
}

/// A text of about so many tokens.
pub fn text(seed: u64, tokens: usize) -> String {
    let words: Vec<&str> = random(seed, WORDS.len()).take(tokens).map(|index| WORDS[index]).collect();
    words.join(" ")
}

/// Numbers below `bound`, the same for the same seed.
fn random(seed: u64, bound: usize) -> impl Iterator<Item = usize> {
    let sampling = Sampling { seed: Some(seed), ..Sampling::default() };
    (0..).map(move |index| (sampling.uniform(index) * bound as f32) as usize)
}
