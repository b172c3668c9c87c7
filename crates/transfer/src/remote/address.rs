//! Addresses: what is sent, what is shown, and what must be neither.

use hyper::Uri;
use hyper::header::HeaderValue;
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};

use super::connect::{basic, fatal};
use crate::Failure;

/// What a name may hold as it is; stores' signatures are over exactly this form.
const NAME: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');
/// The same for the value of a query.
const VALUE: &AsciiSet = &NAME.add(b'/');
/// What people type into an address and HTTP can't have there. Their own `%` is theirs.
const TYPED: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'\\').add(b'^').add(b'`').add(b'{').add(b'|').add(b'}');

/// An address of HTTP in its parts.
#[derive(Clone)]
pub struct Address {
    /// Without user, password, query and the slash at its end.
    pub base: String,
    /// The header that user and password become.
    pub user: Option<HeaderValue>,
    /// As it stands there.
    pub query: Option<String>,
}

impl Address {
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let wrong = || fatal("the address is not of the form http[s]://HOST[:PORT][/PATH]".into());
        let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
        let scheme = scheme.to_ascii_lowercase();
        let rest = rest.split('#').next().unwrap_or_default();
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
        let usual = match &*scheme {
            "http" => ":80",
            "https" => ":443",
            _ => return Err(wrong()),
        };
        // Signatures are over the host as it is usually written.
        let host = host.to_ascii_lowercase();
        let host = host.strip_suffix(usual).unwrap_or(&host);
        let path = utf8_percent_encode(path, TYPED);
        let base = format!("{scheme}://{host}{path}");
        base.parse::<Uri>()
            .ok()
            .and_then(|uri| uri.host().filter(|host| !host.is_empty()).map(drop))
            .ok_or_else(wrong)?;
        let user = user.map(|user| basic(user).ok_or_else(wrong)).transpose()?;
        let query = query.map(|query| utf8_percent_encode(query, TYPED).to_string());
        Ok(Self { base, user, query })
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
        assert_eq!(address.user.unwrap(), "Basic YW5uOnM6Y3JldA==");
        for wrong in ["", "https://", "ftp://host/", "https:///path", "http://ho st/", "https://ünicode/"] {
            assert!(Address::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_shown_has_neither_user_nor_query() {
        assert_eq!(shown("https://ann:secret@host/a?sig=secret#x"), "https://host/a");
        assert_eq!(shown("ann:secret@host/a?sig=secret"), "host/a");
        assert_eq!(shown("s3://bucket/what?is#this"), "s3://bucket/what?is#this");
    }

    #[test]
    fn names_are_encoded_as_signatures_have_them() {
        assert_eq!(encoded_name("a b/ü+~.txt").unwrap(), "a%20b/%C3%BC%2B~.txt");
        assert!(encoded_name("a/../b").is_err());
        assert_eq!(encoded_query(&[("uploads", ""), ("prefix", "a/b c")]), "uploads=&prefix=a%2Fb%20c");
    }
}
