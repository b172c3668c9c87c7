//! HTTP addresses, in the form for requests, and in a form for messages that contains no secrets.

use hyper::header::HeaderValue;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::Url;

use super::Result;
use super::connections::basic;
use crate::Failure;

/// The characters that are not percent-encoded in the name of an object. The signatures of stores cover the name in
/// exactly this form.
const NAME: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');
/// The characters that are not percent-encoded in the value of a query parameter.
const VALUE: &AsciiSet = &NAME.add(b'/');

/// An HTTP address, split into three: the base, the header with user and password, and the query.
#[derive(Clone)]
pub struct Address {
    /// The address up to the query. User and password are removed.
    pub base: String,
    /// The `Authorization` header with user and password; `None` if the address has no user.
    pub user: Option<HeaderValue>,
    /// The query, percent-encoded as in the address.
    pub query: Option<String>,
}

impl Address {
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || Failure::fatal("the address is not of the form http[s]://HOST[:PORT][/PATH]");
        let mut url = Url::parse(text).map_err(|_| wrong())?;
        // Without this check, `http:///path` would be an address with the host `path`.
        let hostless = text.split_once("://").is_none_or(|(_, rest)| rest.starts_with('/'));
        if hostless || !matches!(url.scheme(), "http" | "https") {
            return Err(wrong());
        }
        let user = match (url.username(), url.password()) {
            ("", None) => None,
            (user, password) => Some(basic(&format!("{user}:{}", password.unwrap_or(""))).ok_or_else(wrong)?),
        };
        let query = url.query().map(String::from);
        url.set_query(None);
        url.set_fragment(None);
        // These calls fail only if the address has no host.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        Ok(Self { base: url.into(), user, query })
    }

    /// Returns the address that the header `Location` of a redirect names, which may be relative to `from`. User and
    /// password are removed. `None` if it is invalid.
    pub fn joined(from: &str, location: &str) -> Option<String> {
        let next = Url::parse(from).ok()?.join(location).ok()?;
        Some(Self::parse(next.as_str()).ok()?.whole())
    }

    /// Returns the base with slashes removed from its end, so that a path can be appended.
    pub fn trimmed(&self) -> &str {
        self.base.trim_end_matches('/')
    }

    /// Returns the address with the query. User and password are removed.
    pub fn whole(&self) -> String {
        self.query.as_ref().map_or_else(|| self.base.clone(), |query| format!("{}?{query}", self.base))
    }
}

/// Returns an address in a form for messages, without user, password and query. If the text is not a valid address,
/// removes everything that may be secret.
pub fn shown(text: &str) -> String {
    let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
    if matches!(scheme, "s3" | "gs" | "az") {
        // A bucket's name contains no `@`, so the text in front of it is a user and password.
        let (bucket, name) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let bucket = bucket.rsplit('@').next().unwrap_or_default();
        return format!("{scheme}://{bucket}{name}");
    }
    // In an invalid address, the password may contain one of the characters that normally end it. Its end is then
    // unknown.
    let is_clear = !scheme.is_empty() && Url::parse(text).is_ok();
    let has_late_user = rest.find(['/', '?', '#']).is_some_and(|end| rest[end..].contains('@'));
    if has_late_user && !is_clear {
        return if scheme.is_empty() { "…".into() } else { format!("{scheme}://…") };
    }
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let authority = rest.split('/').next().unwrap_or_default();
    let rest = authority.rfind('@').map_or(rest, |at| &rest[at + 1..]);
    if scheme.is_empty() { rest.into() } else { format!("{scheme}://{rest}") }
}

/// Percent-encodes the name of an object for use in an address.
pub fn encoded_name(name: &str) -> Result<String> {
    // Programs that sign or forward an address resolve the path components `.` and `..`. The address would then name
    // another object.
    if name.split('/').any(|part| part == "." || part == "..") {
        return Err(Failure::fatal(format!("the name {name} has a part `.` or `..`, which can't be in an address")));
    }
    Ok(utf8_percent_encode(name, NAME).to_string())
}

/// Encodes pairs of names and values as the query of an address, without the `?` in front.
pub fn encoded_query(pairs: &[(&str, &str)]) -> String {
    let pairs = pairs.iter().map(|(name, value)| match *value {
        "" => format!("{name}="),
        value => format!("{name}={}", utf8_percent_encode(value, VALUE)),
    });
    pairs.collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_normalized_and_its_user_is_separated() {
        let address = Address::parse("HTTPS://ann:s%3Acret@Example.COM:443/a b/ü%20?sig=s3cret#top").unwrap();
        assert_eq!(address.base, "https://example.com/a%20b/%C3%BC%20");
        assert_eq!(address.whole(), "https://example.com/a%20b/%C3%BC%20?sig=s3cret");
        assert_eq!(Address::joined("https://host/a/b?c", "../d?e").unwrap(), "https://host/d?e");
        assert_eq!(Address::joined("https://host/a/b", "//ann:pw@other").unwrap(), "https://other/");
        assert_eq!(address.user.unwrap(), "Basic YW5uOnM6Y3JldA==");
        for wrong in ["", "https://", "ftp://host/", "https:///path", "http://ho st/", "mailto:ann@host"] {
            assert!(Address::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_shown_address_has_neither_user_nor_query() {
        assert_eq!(shown("https://ann:secret@host/a?sig=secret#x"), "https://host/a");
        assert_eq!(shown("ann:secret@host/a?sig=secret"), "host/a");
        assert_eq!(shown("s3://bucket/what?is#this"), "s3://bucket/what?is#this");
        assert_eq!(shown("https://host/a@b"), "https://host/a@b");
        assert_eq!(shown("s3://key:s@cret@bucket/a@b"), "s3://bucket/a@b");
        for end in ['/', '?', '#'] {
            assert_eq!(shown(&format!("https://ann:se{end}cret@host/a")), "https://…");
            assert_eq!(shown(&format!("ann:se{end}cret@host/a")), "…");
        }
    }

    #[test]
    fn names_are_encoded_as_signatures_require() {
        assert_eq!(encoded_name("a b/ü+~.txt").unwrap(), "a%20b/%C3%BC%2B~.txt");
        assert!(encoded_name("a/../b").is_err());
        assert_eq!(encoded_query(&[("uploads", ""), ("prefix", "a/b c")]), "uploads=&prefix=a%2Fb%20c");
    }
}
