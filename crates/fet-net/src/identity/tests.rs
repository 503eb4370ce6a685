//! Keys on disk and as text.

use curve25519_dalek::montgomery::MontgomeryPoint;

use super::*;

#[test]
fn a_created_file_is_read_again_and_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.key");
    let keys = Keys::create(&path).unwrap();
    assert_eq!(Keys::read(&path).unwrap().public(), keys.public());
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("# ") && text.lines().count() == 2 && text.contains("\nSU"), "{text}");
    assert!(matches!(Keys::create(&path), Err(IdentityError::Exists(_))));
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    let secret = text.lines().nth(1).unwrap();
    assert!(!format!("{keys:?}").contains(secret) && format!("{keys:?}").contains("U"));
}

#[cfg(unix)]
#[test]
fn a_file_that_others_may_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.key");
    Keys::create(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let error = Keys::read(&path).unwrap_err().to_string();
    assert!(error.contains("0640") && error.contains("chmod 600"), "{error}");
}

#[cfg(unix)]
#[test]
fn accepts_a_read_only_file_that_root_put_there_for_a_group() {
    for (mode, owners, expected) in [
        (0o440, [0, 2000], true),
        (0o440, [1000, 0], true),
        (0o400, [0, 0], true),
        (0o440, [1000, 1000], false),
        (0o640, [0, 0], false),
        (0o444, [0, 0], false),
        (0o450, [0, 0], false),
    ] {
        assert_eq!(is_mounted(mode, owners), expected, "{mode:o} {owners:?}");
    }
}

#[test]
fn a_file_without_one_key_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.key");
    for (text, expected) in
        [("# nothing\n", "0 lines"), ("SUA\nSUB\n", "2 lines"), ("SUABC\n", "5 characters")]
    {
        fet_io::write_private(&path, text.as_bytes()).unwrap();
        let error = Keys::read(&path).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let error = Keys::read(&folder.path().join("none")).unwrap_err().to_string();
    assert!(error.contains("cannot be read"), "{error}");
}

#[test]
fn both_forms_are_of_one_key() {
    let keys = Keys::generate();
    let text = keys.public().to_string();
    assert_eq!(text.parse::<PublicIdentity>().unwrap(), keys.public());
    let derived = MontgomeryPoint::mul_base_clamped(*keys.exchange());
    assert_eq!(derived.to_bytes(), keys.public().exchange());
}

#[test]
fn a_point_of_small_order_is_no_identity() {
    let mut one = [0; 32];
    one[0] = 1;
    assert_eq!(nkey::encode_public(&one).parse::<PublicIdentity>(), Err(NkeyError::NotAKey));
}

/// Compares with the seed and public key of RFC 8032, section 7.1, test 1.
#[test]
fn the_public_key_is_that_of_the_standard() {
    let hex = |text: &str| -> Vec<u8> {
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
    };
    let seed = hex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60");
    let public = hex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
    let keys = Keys(SigningKey::from_bytes(seed.as_slice().try_into().unwrap()));
    assert_eq!(keys.public().0.as_slice(), public);
}
