//! Has the benchmarks load LibTorch's library of CUDA, where there is one.

fn main() {
    println!("cargo::rerun-if-env-changed=LIBTORCH");
    let Ok(folder) = std::env::var("LIBTORCH") else { return };
    // Nothing calls the library by name: it registers itself when it is loaded, which the linker does not see.
    if std::path::Path::new(&folder).join("lib/libtorch_cuda.so").exists() {
        for argument in
            ["-L", &format!("{folder}/lib"), "-Wl,--no-as-needed", "-ltorch_cuda", "-Wl,--as-needed"]
        {
            println!("cargo::rustc-link-arg={argument}");
        }
    }
}
