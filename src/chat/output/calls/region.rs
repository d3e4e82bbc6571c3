//! A place in an answer where calls may stand, and how they begin and end there.

use std::{ops::Deref, sync::Arc};

use super::{Arguments, End, NotACall, arguments::all_of};
use crate::{
    chat::output::{
        json::{self, Spelled},
        reading::Reading,
    },
    schema::Shape,
};

/// Tools that families take code to be meant for.
const INTERPRETERS: &[&str] = &["code_interpreter", "python", "ipython"];

/// A place where calls may stand.
#[derive(Debug, Clone)]
pub struct Region {
    reading: Arc<Reading>,
    /// The mark that opened it; `None` where a call may begin without any, which may well be other text.
    pub(in crate::chat::output) opened_by: Option<&'static str>,
    /// The call at hand is of a tool that nobody declared: it is read to its end, so that others may follow, and left
    /// out.
    pub(super) is_silent: bool,
}

impl Deref for Region {
    type Target = Reading;

    fn deref(&self) -> &Reading {
        &self.reading
    }
}

impl Region {
    /// Behind this mark, or where a call may begin without any.
    pub(in crate::chat::output) fn new(reading: &Arc<Reading>, opened_by: Option<&'static str>) -> Region {
        Region { reading: Arc::clone(reading), opened_by, is_silent: false }
    }

    /// Whether this mark opened it.
    pub(in crate::chat::output) fn is_opened_by(&self, mark: &str) -> bool {
        self.opened_by == Some(mark)
    }

    /// A call of this tool begins. From here on nothing of it can become text again; so the name must be certain.
    ///
    /// # Errors
    /// No tool of this name was declared.
    pub(in crate::chat::output) fn call(&self, name: &str) -> Result<Arguments, NotACall> {
        self.call_with_id(name, None)
    }

    /// [`Region::call`] with the id that the model gave it. Behind a mark, a call of a tool that was not declared is read,
    /// too, and left out; it becomes text again where no other call is made.
    pub(in crate::chat::output) fn call_with_id(&self, name: &str, id: Option<String>) -> Result<Arguments, NotACall> {
        if !self.may_call(name) {
            self.opened_by.ok_or(NotACall)?;
            self.input.hold();
            return Ok(Arguments::new(Region { is_silent: true, ..self.clone() }, Shape::unknown()));
        }
        let (name, shape) = self.tool(name).ok_or(NotACall)?;
        self.output.begin_call(name, id);
        self.input.unpin();
        Ok(Arguments::new(self.clone(), shape.clone()))
    }

    /// A call of this tool with all of its arguments: what comes next as JSON, up to one of these marks. Where there is
    /// nothing before that mark, there are no arguments.
    pub(in crate::chat::output) async fn call_with_object(
        &self,
        name: &str,
        id: Option<String>,
        ends: &[&str],
    ) -> Result<(), NotACall> {
        let input = &self.input;
        input.skip_space().await;
        for end in ends {
            if input.is_next(end).await {
                self.call_with_id(name, id)?.all(Spelled::members([]));
                return Ok(());
            }
        }
        if input.peek().await.ok_or(NotACall)? == '{' {
            return self.call_with_id(name, id)?.object(ends).await;
        }
        let mut raw = String::new();
        json::copy(input, &Shape::unknown(), &mut raw).await?;
        let arguments = all_of(&raw)?;
        self.call_with_id(name, id)?.all(arguments);
        Ok(())
    }

    /// A call of this tool whose arguments were read before its name was.
    pub(in crate::chat::output) fn call_with_all(
        &self,
        name: &str,
        id: Option<String>,
        json: &str,
    ) -> Result<(), NotACall> {
        let arguments = all_of(json)?;
        self.call_with_id(name, id)?.all(arguments);
        Ok(())
    }

    /// Whether a call of this tool may begin, which is what the answer says. One that may not is reported.
    pub(in crate::chat::output) fn may_call(&self, name: &str) -> bool {
        let declared = self.declares(name);
        if !declared && self.opened_by.is_some() {
            self.output.reject(name);
        }
        declared
    }

    /// Whether this tool was declared.
    pub(in crate::chat::output) fn declares(&self, name: &str) -> bool {
        self.tool(name).is_some()
    }

    /// Takes this, which must be next behind white space.
    pub(in crate::chat::output) async fn expect(&self, mark: &str) -> Result<(), NotACall> {
        self.input.skip_space().await;
        if self.input.eat(mark).await { Ok(()) } else { Err(NotACall) }
    }

    /// Takes the first of these that is next behind white space, and returns its index.
    pub(in crate::chat::output) async fn one_of(&self, marks: &[&str]) -> Result<usize, NotACall> {
        self.input.skip_space().await;
        for (index, mark) in marks.iter().enumerate() {
            if self.input.eat(mark).await {
                return Ok(index);
            }
        }
        Err(NotACall)
    }

    /// Behind an item of a list: whether another follows. Takes the comma, which may be missing before the end, or the
    /// end.
    pub(in crate::chat::output) async fn goes_on(&self, end: &str) -> Result<bool, NotACall> {
        self.input.skip_space().await;
        let more = self.input.eat(",").await;
        self.input.skip_space().await;
        if self.input.eat(end).await {
            return Ok(false);
        }
        if more { Ok(true) } else { Err(NotACall) }
    }

    /// Takes the mark that closes calls, if it is next. Models leave it out; and the end of an answer that was cut may
    /// be its beginning.
    pub(in crate::chat::output) async fn close(&self, mark: &str) {
        self.input.pin();
        self.input.skip_space().await;
        if self.input.eat(mark).await {
            return;
        }
        if self.input.met_end() && mark.starts_with(&self.input.pending()) {
            self.input.discard();
        } else {
            self.input.rewind();
        }
    }

    /// Code for an interpreter, up to the first of these marks, where such a tool is declared: all of it is the argument
    /// `code`, or the tool's first. Takes the mark and returns its index.
    pub(in crate::chat::output) async fn code(&self, marks: &[&str]) -> Result<usize, NotACall> {
        let name = INTERPRETERS.iter().find(|name| self.declares(name)).ok_or(NotACall)?;
        self.code_for(name, marks).await
    }

    /// [`Region::code`] for the tool of this name.
    pub(in crate::chat::output) async fn code_for(&self, name: &str, marks: &[&str]) -> Result<usize, NotACall> {
        let mut arguments = self.call(name)?;
        let members = arguments.shape().members();
        let code = members.iter().find(|name| *name == "code").or(members.first());
        let code = code.map_or("code", String::as_str).to_owned();
        let mark = arguments.text(&code, End { trim: true, ..End::at(marks) }).await?;
        arguments.end();
        Ok(mark)
    }

    /// A call is complete; a failure from here on takes back only what follows.
    pub(in crate::chat::output) fn end_call(&self) {
        if self.is_silent {
            return;
        }
        self.output.end_call();
        self.input.pin();
    }
}
