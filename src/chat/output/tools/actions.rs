//! Actions on a screen as Python. An action is a tool of that name, or of the tool for the whole computer.
//!
//! `click(start_box='(100,200)')`

use super::{NotACall, Region, json::Spelled, statement};
use crate::chat::dialect::PythonArguments;

/// Tools that take every action, by its name in `action`.
const COMPUTERS: &[&str] = &["computer", "computer_use", "browser", "mobile_use"];

/// How arguments are written.
pub(super) const ARGUMENTS: PythonArguments = PythonArguments::Repr;

/// Reads actions behind `Action:`.
pub(super) async fn read(region: &Region) -> Result<(), NotACall> {
    let input = &region.input;
    input.skip_space().await;
    let mut name = statement::name(region).await?;
    loop {
        action(region, name).await?;
        // More of them may follow after empty lines.
        input.skip_space().await;
        input.eat("Action:").await;
        input.skip_space().await;
        name = match statement::name(region).await {
            Ok(name) if takes(region, &name) => name,
            _ => {
                input.rewind();
                return Ok(());
            }
        };
    }
}

/// Whether there is a tool for this action.
fn takes(region: &Region, name: &str) -> bool {
    region.declares(name) || COMPUTERS.iter().any(|computer| region.declares(computer))
}

/// From behind the parenthesis.
async fn action(region: &Region, name: String) -> Result<(), NotACall> {
    if region.declares(&name) {
        return statement::arguments(region, region.call(&name)?).await;
    }
    let computer = COMPUTERS.iter().find(|name| region.declares(name)).ok_or(NotACall)?;
    let mut arguments = region.call(computer)?;
    arguments.member("action", &Spelled::Text(name));
    statement::arguments(region, arguments).await
}
