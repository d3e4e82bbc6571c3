//! The guide through thoughts: nothing binds them but their budget, and the grammar begins behind them.

use super::*;

/// The opening, and how the thought ends.
fn thinking(opening: &'static str, budget: Option<usize>) -> (&'static str, ThoughtGuide) {
    let [end, closing] = ["</t>", ". </t>\n"].map(str::to_owned);
    (opening, ThoughtGuide { end, closing, budget, ..ThoughtGuide::default() })
}

/// Plays a model that says `wanted` where it is free to, and then nothing more; the tokens that are no text by name.
/// Whatever it is forced to say it says. The whole answer, and how often it was masked.
fn play(bench: &Bench, mut guide: AnswerGuide, wanted: &[u32]) -> Result<String, String> {
    let (mut wanted, mut answer, mut taken) = (wanted.iter(), Vec::new(), Vec::<u32>::new());
    loop {
        let mut want = || wanted.next().copied().unwrap_or(bench.stop_tokens[0]);
        let told: Vec<TokenId> = taken.iter().copied().map(TokenId).collect();
        taken = match guide.advise(&told)? {
            Advice::Free => vec![want()],
            Advice::Force(tokens) => tokens.into_iter().map(u32::from).collect(),
            Advice::End => vec![bench.stop_tokens[0]],
            Advice::Mask(mask) => match want() {
                token if mask.contains(token) => vec![token],
                token => return Err(format!("{answer:?}: {:?} is masked", bench.tokenizer.name(token))),
            },
        };
        let ends = taken.iter().any(|token| bench.stop_tokens.contains(token));
        answer.extend(taken.iter().filter(|token| !bench.stop_tokens.contains(token)));
        if ends {
            let bytes: Vec<u8> =
                answer.iter().flat_map(|&token| bench.tokenizer.spelling(token).into_owned()).collect();
            return Ok(String::from_utf8(bytes).unwrap());
        }
    }
}

fn check((opening, thinking): &(&str, ThoughtGuide), format: Format, wanted: &str, expected: Result<&str, &str>) {
    // With a budget the tokens count, and those of bytes can be foretold.
    let starter = if thinking.budget.is_none() { Bench::starter() } else { None };
    for bench in [Some(Bench::bytes()), starter].into_iter().flatten() {
        let grammar = bench.grammars.compile(&format).unwrap();
        let matcher = grammar.map(|grammar| grammar.matcher());
        let guide =
            AnswerGuide::new(&bench.tokenizer, &bench.stop_tokens, Parts { opening, thought: Some(thinking), matcher })
                .unwrap();
        let wanted_ids = bench.tokenizer.encode(wanted, false).unwrap();
        match (play(bench, guide, &wanted_ids), expected) {
            (Ok(answer), Ok(expected)) => assert_eq!(answer, expected, "{wanted:?}"),
            (Err(error), Err(piece)) => assert!(error.contains(piece), "{wanted:?}: {error}"),
            (played, _) => panic!("{wanted:?}: {played:?}"),
        }
    }
}

fn yes() -> Format {
    Format::Choice(vec!["yes".into(), "no".into()])
}

#[test]
fn the_grammar_begins_behind_the_thought() {
    // A choice of two is forced after its first letter, which is all that the model needs to say.
    check(&thinking("", None), yes(), "{so} </t>y", Ok("{so} </t>\nyes"));
    check(&thinking("", None), yes(), "</t>n", Ok("</t>\nno"));
    check(&thinking("<t>", None), yes(), "a</t>n", Ok("<t>a</t>\nno"));
    check(&thinking("", None), yes(), "a</t>b", Err("is masked"));
    // Half a mark is none, and of several the first counts.
    check(&thinking("", None), yes(), "</t </</t>y", Ok("</t </</t>\nyes"));
    check(&thinking("", None), Format::Regex("</t>[ab]".into()), "x</t>a", Ok("x</t>\n</t>a"));
}

#[test]
fn a_thought_is_no_answer() {
    for bench in [Some(Bench::bytes()), Bench::starter()].into_iter().flatten() {
        let mut guided = AnswerGuide::new(
            &bench.tokenizer,
            &bench.stop_tokens,
            Parts { opening: "", thought: Some(&thinking("", None).1), matcher: None },
        )
        .unwrap();
        assert_eq!(guided.advise(&[]), Ok(Advice::Free), "without a grammar it may end as it likes");
        let matcher = bench.compile(&yes()).matcher();
        let think = thinking("", None).1;
        let mut guided = AnswerGuide::new(
            &bench.tokenizer,
            &bench.stop_tokens,
            Parts { opening: "", thought: Some(&think), matcher: Some(matcher) },
        )
        .unwrap();
        let Ok(Advice::Mask(mask)) = guided.advise(&[]) else { panic!("a mask") };
        let all = 0..bench.tokenizer.vocab_size() as u32;
        assert!(all.clone().all(|id| mask.contains(id) != bench.stop_tokens.contains(&id)));
    }
}

#[test]
fn a_budget_ends_the_thought() {
    let bench = Bench::bytes();
    for (opening, budget, wanted, expected) in [
        ("", 4, "abcdefgn", "abcd. </t>\ne"),
        ("", 0, "n", ". </t>\nn"),
        ("<t>", 2, "abcx", "<t>ab. </t>\nc"),
        ("", 6, "a</t>n", "a</t>n"),
    ] {
        let (opening, think) = thinking(opening, Some(budget));
        let wanted = bench.tokenizer.encode(wanted, false).unwrap();
        // Without a grammar the model goes on as it likes.
        let guide = AnswerGuide::new(
            &bench.tokenizer,
            &bench.stop_tokens,
            Parts { opening, thought: Some(&think), matcher: None },
        )
        .unwrap();
        let answer = play(bench, guide, &wanted).unwrap();
        assert!(answer.starts_with(expected), "{answer:?}");
    }
    check(&thinking("", Some(2)), yes(), "aby", Ok("ab. </t>\nyes"));
    check(&thinking("", Some(0)), yes(), "y", Ok(". </t>\nyes"));
}

/// The budget is of all thoughts together: one that begins when it is spent is ended at once.
#[test]
fn a_budget_holds_for_the_next_thought() {
    let bench = Bench::bytes();
    for (budget, wanted, expected) in [
        // Two of seven are left for the second thought, and the third is over before it begins.
        (7, "a</t>b<t>cdefg<t>h", "a</t>b<t>cd. </t>\nefg<t>|</t>\nh"),
        (2, "ab<t>c", "ab. </t>\n<t>|</t>\nc"),
        (0, "<t><t>c", ". </t>\n<t>|</t>\n<t>|</t>\nc"),
        (10, "a</t><t>b</t>c<", "a</t><t>b</t>c<"),
    ] {
        let think =
            ThoughtGuide { again: &["<t>", "<tt>"], last: "|</t>\n".to_owned(), ..thinking("", Some(budget)).1 };
        let wanted = bench.tokenizer.encode(wanted, false).unwrap();
        let guide = AnswerGuide::new(
            &bench.tokenizer,
            &bench.stop_tokens,
            Parts { opening: "", thought: Some(&think), matcher: None },
        )
        .unwrap();
        let answer = play(bench, guide, &wanted).unwrap();
        assert!(answer.starts_with(expected), "{answer:?} for {expected:?}");
    }
}

#[test]
fn a_mark_that_is_one_token() {
    let bench = Bench::bytes();
    let think = |mark: &str| ThoughtGuide { end: mark.into(), closing: format!("{mark} "), ..ThoughtGuide::default() };
    for (mark, token) in [("<tool é>", 2), ("<|s|>", 0)] {
        let wanted = [3 + 97, token, 3 + 121];
        let matcher = bench.compile(&yes()).matcher();
        let guide = AnswerGuide::new(
            &bench.tokenizer,
            &[1],
            Parts { opening: "", thought: Some(&think(mark)), matcher: Some(matcher) },
        )
        .unwrap();
        assert_eq!(play(bench, guide, &wanted).unwrap(), format!("a{mark} yes"));
    }
}

/// A token may end a thought and begin the answer: here it is the mark's last letter and the answer's first.
#[test]
fn a_token_that_ends_the_thought_and_goes_on() {
    let bench = Bench::bytes();
    // The token is `<tool é>`, of which `<tool` is the mark.
    let check = |answer: &str, expected: Result<&str, &str>| {
        let think = ThoughtGuide { end: "<tool".into(), closing: "<tool".into(), ..ThoughtGuide::default() };
        let matcher = bench.compile(&Format::Regex(answer.into())).matcher();
        let guide = AnswerGuide::new(
            &bench.tokenizer,
            &[1],
            Parts { opening: "", thought: Some(&think), matcher: Some(matcher) },
        )
        .unwrap();
        match (play(bench, guide, &[3 + 97, 2, 3 + 121]), expected) {
            (Ok(said), Ok(expected)) => assert_eq!(said, expected),
            (Err(error), Err(piece)) => assert!(error.contains(piece), "{error}"),
            (said, _) => panic!("{said:?}"),
        }
    };
    check("é>y", Ok("a<tool é>y"));
    check("y", Err("goes on with \"é>\""));
}

#[test]
fn a_closing_without_its_mark_is_our_mistake() {
    let bench = Bench::bytes();
    for mark in ["", "</u>"] {
        let think = ThoughtGuide { end: mark.into(), ..thinking("", None).1 };
        assert!(matches!(
            AnswerGuide::new(&bench.tokenizer, &[1], Parts { opening: "", thought: Some(&think), matcher: None }),
            Err(Error::Internal(_))
        ));
    }
}
