//! The store of prefixes against a plain list.

use super::*;

fn keys(ids: &[u32]) -> Vec<Key> {
    ids.iter().map(|&id| Key::from(TokenId(id))).collect()
}

fn find(prefixes: &mut Prefixes<&'static str>, prompt: &[u32]) -> Option<(&'static str, usize)> {
    prefixes.find(&keys(prompt), |state, _| Some(*state)).state
}

#[test]
fn the_longest_shared_start_wins_and_never_all_of_the_prompt() {
    let mut prefixes = Prefixes::new(100, true);
    prefixes.insert(&keys(&[1, 2, 3]), "a", 1);
    prefixes.insert(&keys(&[1, 2, 4, 5]), "b", 1);
    assert_eq!(find(&mut prefixes, &[1, 2, 4, 9]), Some(("b", 3)));
    assert_eq!(find(&mut prefixes, &[1, 2, 3]).map(|found| found.1), Some(2), "the last token is computed again");
    assert_eq!(find(&mut prefixes, &[1, 2, 3, 3]), Some(("a", 3)));
    assert_eq!(find(&mut prefixes, &[7]), None);
}

#[test]
fn a_longer_entry_takes_the_place_of_its_beginning_only_if_it_can_be_cut() {
    for cuts in [true, false] {
        let mut prefixes = Prefixes::new(100, cuts);
        prefixes.insert(&keys(&[1, 2]), "short", 1);
        prefixes.insert(&keys(&[1, 2, 3]), "long", 1);
        assert_eq!(prefixes.len(), if cuts { 1 } else { 2 });
        prefixes.insert(&keys(&[1]), "shorter", 1);
        assert_eq!(prefixes.len(), if cuts { 1 } else { 3 });
        assert_eq!(prefixes.bytes(), prefixes.len());
    }
}

#[test]
fn the_least_recently_used_goes_first() {
    let mut prefixes = Prefixes::new(10, true);
    prefixes.insert(&keys(&[1, 1]), "a", 4);
    prefixes.insert(&keys(&[2, 2]), "b", 4);
    assert!(find(&mut prefixes, &[1, 1, 1]).is_some());
    prefixes.insert(&keys(&[3, 3]), "c", 4);
    assert!(find(&mut prefixes, &[2, 2, 2]).is_none(), "b was used longest ago");
    assert!(find(&mut prefixes, &[1, 1, 1]).is_some());
    prefixes.insert(&keys(&[4, 4]), "too large", 11);
    assert_eq!((prefixes.len(), prefixes.bytes()), (2, 8));
    prefixes.shed(1);
    assert_eq!((prefixes.len(), prefixes.bytes()), (1, 4));
    assert!(find(&mut prefixes, &[1, 1, 1]).is_some(), "c was used longest ago");
}

#[test]
fn media_are_told_apart_by_their_hashes() {
    let prompt = |hash| TokenPrompt {
        tokens: vec![TokenId(1), TokenId(9), TokenId(9), TokenId(2)],
        media: vec![super::super::job::Media { start: 1, length: 2, hash, data: Arc::new(()) }],
    };
    let mut prefixes = Prefixes::new(100, true);
    prefixes.insert(&Key::of_prompt(&prompt(5)), "five", 1);
    let mut length = |hash| prefixes.find(&Key::of_prompt(&prompt(hash)), |state, _| Some(*state)).state;
    assert_eq!(length(5), Some(("five", 3)));
    assert_eq!(length(6), Some(("five", 1)), "only what stands before the picture");
}

/// The definition: all entries, looked at one by one.
fn reference(entries: &[Vec<Key>], prompt: &[Key], cuts: bool) -> (usize, usize) {
    let shared = |entry: &Vec<Key>| common(entry, prompt);
    let limit = prompt.len() - 1;
    let usable = |entry: &Vec<Key>| match cuts {
        true => shared(entry).min(limit),
        false if shared(entry) == entry.len() && entry.len() <= limit => entry.len(),
        false => 0,
    };
    let longest = |length: &dyn Fn(&Vec<Key>) -> usize| entries.iter().map(length).max().unwrap_or(0);
    (longest(&usable), longest(&shared))
}

#[test]
fn what_is_found_is_what_looking_at_all_entries_finds() {
    let mut random = 7u64;
    let mut below = |bound: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % bound
    };
    let mut hits = 0;
    for round in 0..300 {
        let cuts = round % 2 == 0;
        let (mut prefixes, mut all) = (Prefixes::new(usize::MAX, cuts), Vec::new());
        for _ in 0..below(30) {
            let text: Vec<u32> = (0..1 + below(8)).map(|_| below(3) as u32).collect();
            prefixes.insert(&keys(&text), text.len(), 1);
            all.push(keys(&text));
        }
        for _ in 0..20 {
            let text: Vec<u32> = (0..1 + below(10)).map(|_| below(3) as u32).collect();
            let cut = |own: &usize, length: usize| (length == *own || cuts && length < *own).then_some(length);
            let found = prefixes.find(&keys(&text), cut);
            let length = found.state.map_or(0, |(state, length)| {
                assert_eq!(state, length);
                length
            });
            assert_eq!((length, found.shared), reference(&all, &keys(&text), cuts), "{text:?}");
            hits += usize::from(length > 0);
        }
    }
    assert!(hits > 2000, "{hits}");
}
