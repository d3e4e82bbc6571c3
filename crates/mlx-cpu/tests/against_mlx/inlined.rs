//! Optimised code holds no vector operation as a call. Such a call is what remains of a kernel's function that was passed
//! on as a value: its shim has no instruction set of its own, so nothing that needs one is inlined into it.

use object::{Object, ObjectSymbol};

#[test]
fn no_vector_operation_is_called() {
    if cfg!(debug_assertions) {
        return;
    }
    let program = std::fs::read(std::env::current_exe().expect("a path")).expect("this test");
    let program = object::File::parse(&*program).expect("an object file");
    let names = program.symbols().filter_map(|symbol| symbol.name().ok().map(str::to_owned));
    // core::arch::x86_64::_mm…, core::arch::aarch64::v…
    let is_called = |name: &String| {
        name.contains("core_arch3x86") && name.contains("_mm") || name.contains("core_arch10arm_shared4neon")
    };
    let called: Vec<String> = names.filter(is_called).collect();
    assert!(called.is_empty(), "{called:#?}");
}
