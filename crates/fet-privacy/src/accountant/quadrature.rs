//! Gauss-Legendre nodes on [0, 1], for integrals that need relative precision.

/// Pairs of (node, weight), exact for polynomials up to degree 9.
pub(crate) const FIVE: [(f64, f64); 5] = [
    (0.046_910_077_030_668_004, 0.118_463_442_528_094_54),
    (0.230_765_344_947_158_45, 0.239_314_335_249_683_23),
    (0.5, 0.284_444_444_444_444_44),
    (0.769_234_655_052_841_5, 0.239_314_335_249_683_23),
    (0.953_089_922_969_332, 0.118_463_442_528_094_54),
];
