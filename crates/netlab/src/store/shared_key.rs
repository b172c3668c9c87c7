//! Verifies Azure's signatures with the account's key. A signature is in a header, or in a signed URL.

use std::time::{Duration, SystemTime};

use httpdate::parse_http_date;
use ring::hmac::{self, HMAC_SHA256};

use super::Kind;
use super::answer::{Refusal, iso, refuse};
use super::checksum::{base64, from_base64};
use super::request::{Head, decoded};

/// Largest accepted difference between the clocks of client and store.
const SKEW: Duration = Duration::from_secs(15 * 60);

/// Oldest version of Azure's protocol whose signed URLs this file can verify. In older versions, another text is
/// signed.
const FIRST_VERSION: &str = "2020-12-06";

fn failed(message: &str) -> Refusal {
    Refusal::new(403, "AuthenticationFailed", message)
}

/// Checks that a request is correctly signed, and that the signature allows the request's operation.
pub(super) fn verify(head: &Head, kind: Kind, account: &str, secret: &str) -> Result<(), Refusal> {
    let header = head.header("authorization");
    let (text, signature) = if let Some(signature) = head.parameter("sig") {
        check_rights(head, kind)?;
        (shared_access(head, account)?, signature)
    } else {
        let (name, signature) =
            header.strip_prefix("SharedKey ").and_then(|rest| rest.split_once(':')).ok_or_else(|| match header {
                "" => Refusal::new(401, "NoAuthenticationInformation", "The request is not signed."),
                _ => failed("The header authorization is malformed."),
            })?;
        if name != account {
            return Err(failed("There is no such account."));
        }
        check_moment(head)?;
        (shared_key(head, account), signature)
    };
    let key = hmac::Key::new(HMAC_SHA256, &from_base64(secret).unwrap_or_default());
    if signature != base64(hmac::sign(&key, text.as_bytes())) {
        return Err(failed("The signature of the request is not the one that the store calculated."));
    }
    Ok(())
}

fn check_moment(head: &Head) -> Result<(), Refusal> {
    let date = match head.header("x-ms-date") {
        "" => head.header("date"),
        date => date,
    };
    let date = parse_http_date(date).map_err(|_| failed("The request has no date."))?;
    let apart = |one: SystemTime, other| one.duration_since(other).unwrap_or(Duration::ZERO);
    if apart(date, head.now).max(apart(head.now, date)) > SKEW {
        return Err(failed("The request's date is too far from the store's."));
    }
    Ok(())
}

/// Returns the text that the client signed, for a request whose signature is in a header.
fn shared_key(head: &Head, account: &str) -> String {
    const SIGNED: [&str; 11] = [
        "content-encoding",
        "content-language",
        "content-length",
        "content-md5",
        "content-type",
        "date",
        "if-modified-since",
        "if-match",
        "if-none-match",
        "if-unmodified-since",
        "range",
    ];
    let mut text = format!("{}\n", head.method);
    for name in SIGNED {
        let is_left_out = match name {
            "content-length" => head.header(name) == "0",
            "date" => !head.header("x-ms-date").is_empty(),
            _ => false,
        };
        text.push_str(if is_left_out { "" } else { head.header(name) });
        text.push('\n');
    }
    let mut headers: Vec<_> = head.headers.keys().map(|name| name.as_str()).collect();
    headers.retain(|name| name.starts_with("x-ms-"));
    headers.sort_unstable();
    for name in headers {
        text.push_str(&format!("{name}:{}\n", head.header(name).trim()));
    }
    text.push_str(&format!("/{account}{}", head.raw_path));
    let mut parameters: Vec<_> = head.parameters.iter().map(|(name, value)| (name.to_lowercase(), &**value)).collect();
    parameters.sort_unstable();
    for group in parameters.chunk_by(|(one, _), (other, _)| one == other) {
        let values: Vec<_> = group.iter().map(|(_, value)| *value).collect();
        text.push_str(&format!("\n{}:{}", group[0].0, values.join(",")));
    }
    text
}

/// Returns the text that the client signed, for a request whose signature is in the URL.
fn shared_access(head: &Head, account: &str) -> Result<String, Refusal> {
    let parameter = |name: &str| head.parameter(name).unwrap_or_default();
    let is_old = parameter("sv") < FIRST_VERSION;
    if is_old || head.has("skoid") {
        return Err(failed("Signatures of this kind or version are not supported."));
    }
    if head.has("ss") {
        let fields = ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv", "ses"].map(parameter);
        return Ok(format!("{account}\n{}\n", fields.join("\n")));
    }
    let path = decoded(&head.raw_path);
    // A signature for a container is valid for every blob in it.
    let resource = if parameter("sr") == "c" { format!("/{account}/{}", head.bucket) } else { path };
    let before = ["sp", "st", "se"].map(parameter).join("\n");
    let after = ["si", "sip", "spr", "sv", "sr", "snapshot", "ses", "rscc", "rscd", "rsce", "rscl", "rsct"];
    Ok(format!("{before}\n/blob{resource}\n{}", after.map(parameter).join("\n")))
}

/// Checks that the signature in a URL is valid at this time, and allows the request's operation.
fn check_rights(head: &Head, kind: Kind) -> Result<(), Refusal> {
    let parameter = |name: &str| head.parameter(name).unwrap_or_default();
    let now = iso(head.now);
    let (start, end) = (parameter("st"), parameter("se"));
    if end.is_empty() || end <= &*now || start > &*now {
        return Err(failed("The signature is not valid yet, or no longer valid."));
    }
    let (right, scope) = match kind {
        Kind::GetObject | Kind::HeadObject | Kind::ListBlocks => ('r', 'o'),
        Kind::PutObject | Kind::PutBlock | Kind::Commit => ('w', 'o'),
        Kind::DeleteObject => ('d', 'o'),
        Kind::ListObjects => ('l', 'c'),
        _ => ('w', 'c'),
    };
    if !parameter("sp").contains(right) {
        return refuse(403, "AuthorizationPermissionMismatch", "The signature does not allow this operation.");
    }
    let is_covered = match (head.has("ss"), parameter("sr")) {
        (true, _) => parameter("ss").contains('b') && parameter("srt").contains(scope),
        (false, "b") => scope == 'o',
        (false, resource) => resource == "c" && kind != Kind::CreateBucket,
    };
    if is_covered { Ok(()) } else { refuse(403, "AuthorizationFailure", "The signature is for another resource.") }
}

#[cfg(test)]
mod tests {
    use hyper::{HeaderMap, Method};

    use super::*;

    fn head(method: Method, address: &str, headers: &[(&'static str, &str)]) -> Head {
        let headers: HeaderMap =
            headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        Head::new(method, &address.parse().unwrap(), headers, None, SystemTime::UNIX_EPOCH)
    }

    #[test]
    fn what_is_signed_is_that_of_the_documentation() {
        // The example is from Microsoft's "Authorize with Shared Key", which gives no signatures.
        let headers = [("x-ms-date", "Fri, 26 Jun 2015 23:39:12 GMT"), ("x-ms-version", "2015-02-21")];
        let head = head(Method::GET, "/mycontainer?restype=container&comp=metadata&timeout=20", &headers);
        let text = "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-version:2015-02-21\n\
            /myaccount/mycontainer\ncomp:metadata\nrestype:container\ntimeout:20";
        assert_eq!(shared_key(&head, "myaccount"), text);
    }

    #[test]
    fn an_address_allows_what_it_says() {
        let code = |kind, rights: &str| {
            let head = head(Method::GET, &format!("/me/box/key?sv=2023-11-03&{rights}&sig=x"), &[]);
            verify(&head, kind, "me", "AAAA").unwrap_err().code
        };
        let end = "se=1970-01-01T00:00:01Z";
        // Azure returns this code if all checks except that of the signature have passed.
        let allowed = "AuthenticationFailed";
        assert_eq!(code(Kind::GetObject, &format!("{end}&sr=b&sp=r")), allowed);
        assert_eq!(code(Kind::PutBlock, &format!("{end}&ss=bq&srt=co&sp=rw")), allowed);
        assert_eq!(code(Kind::PutBlock, &format!("{end}&sr=b&sp=r")), "AuthorizationPermissionMismatch");
        assert_eq!(code(Kind::ListObjects, &format!("{end}&sr=b&sp=rl")), "AuthorizationFailure");
        assert_eq!(code(Kind::ListObjects, &format!("{end}&ss=b&srt=o&sp=rl")), "AuthorizationFailure");
        assert_eq!(code(Kind::GetObject, &format!("{end}&ss=q&srt=o&sp=r")), "AuthorizationFailure");
        let message = |rights: &str| {
            let head = head(Method::GET, &format!("/me/box/key?sv=2023-11-03&sr=b&sp=r&{rights}&sig=x"), &[]);
            verify(&head, Kind::GetObject, "me", "AAAA").unwrap_err().message
        };
        for late in ["se=1970-01-01T00:00:00Z", "sp=r", "st=1970-01-01T00:00:01Z&se=1970-01-01T00:00:02Z"] {
            assert_eq!(message(late), "The signature is not valid yet, or no longer valid.", "{late}");
        }
    }
}
