//! DATA: the wheels a build takes, each pinned by the SHA-256 of every file the registry may answer with.

pub struct Wheel {
    /// The registry's name of the package.
    pub package: &'static str,
    pub version: &'static str,
    /// One digest per platform file; pip refuses a file that matches none.
    pub sha256: &'static [&'static str],
}

/// Linux x86-64 and aarch64.
pub const MLX_CPU: Wheel = Wheel {
    package: "mlx-cpu",
    version: "0.32.2",
    sha256: &[
        "fc5d31b90fc4f457b2f9614ed45651a567d22a6a11a03d114a90a4e10bdd8878",
        "d0f94625588b51a878786dd51cec5617894ce586cf3c94645ce1b64e24c27c0b",
    ],
};

/// macOS arm64: for macOS 14, 15 and 26.
pub const MLX_METAL: Wheel = Wheel {
    package: "mlx-metal",
    version: "0.32.2",
    sha256: &[
        "3825fff379dbc107dd3413e564a06caeaa24819910ec49c0439e454c06a1b9b8",
        "55a369250d220b2cf10213a87a2ac1b1a420608c5b35b1df4e7147ac8e32f121",
        "e6abeac9ac5265830c9c1541b6f96e9be37a85c2446763a46ad466c63a3837ab",
    ],
};

/// Linux with an NVIDIA driver, x86-64 and aarch64.
pub const MLX_CUDA: Wheel = Wheel {
    package: "mlx-cuda-13",
    version: "0.32.2",
    sha256: &[
        "335094ccd1c0c6dc3e09c8caba207c8180602bacc0c38ba20c1d81e9456ab394",
        "49b1a25df9021f3b519a534fd39a32a5cdbf93a1b265a31e59671c2d9fc9f4a2",
    ],
};

/// What `mlx-cuda-13` names in its metadata; its library finds them by an rpath to `../../nvidia/*/lib`.
pub const CUDA_LIBRARIES: &[&str] = &[
    "nvidia-cudnn-cu13==9.*",
    "nvidia-nccl-cu13",
    "nvidia-cublas==13.*",
    "nvidia-cufft==12.*",
    "nvidia-cuda-nvrtc==13.*",
    "nvidia-cuda-runtime==13.*",
];

/// libclang for bindgen: Linux x86-64, Linux aarch64, macOS arm64.
pub const LIBCLANG: Wheel = Wheel {
    package: "libclang",
    version: "18.1.1",
    sha256: &[
        "c533091d8a3bbf7460a00cb6c1a71da93bffe148f172c7d03b1c31fbf8aa2a0b",
        "54dda940a4a0491a9d1532bf071ea3ef26e6dbaf03b5000ed94dd7174e8f9592",
        "0b2e143f0fac830156feb56f9231ff8338c20aecfe72b4ffe96f19e5a1dbb69a",
    ],
};
