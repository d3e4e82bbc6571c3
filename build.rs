//! Tells the binary and the tests where MLX lies, so that they start from any folder and after `cargo clean`.

fn main() {
    let lib = std::env::var("DEP_MLX_LIB").expect("mlx-sys publishes it");
    println!("cargo:rustc-link-arg=-Wl,-rpath,{lib}");
}
