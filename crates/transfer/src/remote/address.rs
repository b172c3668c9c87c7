//! Addresses: what is sent, what is shown, and what must be neither.

use hyper::header::HeaderValue;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::Url;

use super::connect::{basic, fatal};
use crate::Failure;

/// What a name may hold as it is; stores' signatures are over exactly this form.
const NAME: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');
/// The same for the value of a query.
const VALUE: &AsciiSet = &NAME.add(b'/');

/// An address of HTTP in its parts.
#[derive(Clone)]
pub struct Address {
    /// Without user, password and query.
    pub base: String,
    /// The header that user and password become.
    pub user: Option<HeaderValue>,
    /// As it stands there.
    pub query: Option<String>,
}

impl Address {
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let wrong = || fatal("the address is not of the form http[s]://HOST[:PORT][/PATH]".into());
        let mut url = Url::parse(text).map_err(|_| wrong())?;
        // Otherwise `http:///path` would be the host `path`.
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
        // They fail for addresses without a host only.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        Ok(Self { base: url.into(), user, query })
    }

    /// Where a location leads, seen from an address: without its user, if it has one.
    pub fn joined(from: &str, location: &str) -> Option<String> {
        let next = Url::parse(from).ok()?.join(location).ok()?;
        Some(Self::parse(next.as_str()).ok()?.whole())
    }

    /// Without the slash at its end, so that more can be added.
    pub fn trimmed(&self) -> &str {
        self.base.trim_end_matches('/')
    }

    /// All of it but the user.
    pub fn whole(&self) -> String {
        self.query.as_ref().map_or_else(|| self.base.clone(), |query| format!("{}?{query}", self.base))
    }
}

/// An address without user, password and query, to be shown. What is no address is shown as little of as can be.
pub fn shown(text: &str) -> String {
    let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
    if matches!(scheme, "s3" | "gs" | "az") {
        return text.into();
    }
    // In what can't be parsed nobody knows where a password ends that has one of these in it.
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

/// A name as part of an address.
pub fn encoded_name(name: &str) -> Result<String, Failure> {
    // Whoever signs or forwards an address takes these out of it, and it would be another object's.
    if name.split('/').any(|part| part == "." || part == "..") {
        return Err(fatal(format!("the name {name} has a part `.` or `..`, which can't be in an address")));
    }
    Ok(utf8_percent_encode(name, NAME).to_string())
}

/// A query of these.
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
    fn an_address_loses_what_is_secret_and_what_is_usual() {
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
    fn what_is_shown_has_neither_user_nor_query() {
        assert_eq!(shown("https://ann:secret@host/a?sig=secret#x"), "https://host/a");
        assert_eq!(shown("ann:secret@host/a?sig=secret"), "host/a");
        assert_eq!(shown("s3://bucket/what?is#this"), "s3://bucket/what?is#this");
        assert_eq!(shown("https://host/a@b"), "https://host/a@b");
        for end in ['/', '?', '#'] {
            assert_eq!(shown(&format!("https://ann:se{end}cret@host/a")), "https://…");
            assert_eq!(shown(&format!("ann:se{end}cret@host/a")), "…");
        }
    }

    #[test]
    fn names_are_encoded_as_signatures_have_them() {
        assert_eq!(encoded_name("a b/ü+~.txt").unwrap(), "a%20b/%C3%BC%2B~.txt");
        assert!(encoded_name("a/../b").is_err());
        assert_eq!(encoded_query(&[("uploads", ""), ("prefix", "a/b c")]), "uploads=&prefix=a%2Fb%20c");
    }
}
