//! Compiles the C++ side of the primitives against the MLX that mlx-sys took.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=src/prims.cpp");
    let mlx = |what: &str| env::var(format!("DEP_MLX_{what}")).expect("mlx-sys publishes it");
    cc::Build::new()
        .cpp(true)
        .std("c++20")
        .file("src/prims.cpp")
        .include(mlx("INCLUDE"))
        .flag("-include")
        .flag(mlx("PREFIX"))
        .opt_level(2)
        .warnings(false)
        .compile("mlx_cpu_prims");
    // Tests and benches of this package run MLX where the build found it.
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", mlx("LIB"));
}
