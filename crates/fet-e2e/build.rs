//! Passes the path of LibTorch if the program links it, so that the program starts without `LD_LIBRARY_PATH`.

fn main() {
    println!("cargo::rerun-if-env-changed=LIBTORCH");
    if std::env::var_os("CARGO_FEATURE_LIBTORCH").is_some()
        && let Ok(folder) = std::env::var("LIBTORCH")
    {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{folder}/lib");
    }
}
