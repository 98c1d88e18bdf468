# SPDX-License-Identifier: Apache-2.0
"""The bill of materials of one tarball as SPDX 2.3: what is linked in, in which version, under which licence."""
import collections
import datetime
import hashlib
import json

# name: the Debian source package. notice: the package whose copyright file is shipped.
Library = collections.namedtuple("Library", "name package notice licence what")
LINKED = (
    Library("openssl", "libssl-dev", "libssl-dev", "Apache-2.0", "TLS of agent and server"),
    Library("zlib", "zlib1g-dev", "zlib1g-dev", "Zlib", "gzip files"),
    Library("libzstd", "libzstd-dev", "libzstd-dev", "BSD-3-Clause", "zstd files"),
    Library("sqlite3", "libsqlite3-dev", "libsqlite3-dev", "blessing", "Nsight Systems exports"),
    Library("libxcrypt", "libcrypt-dev", "libcrypt-dev", "LGPL-2.1-or-later", "passwords of the web configuration"),
    Library("gcc-12", "libstdc++-12-dev", "gcc-12-base", "GPL-3.0-or-later WITH GCC-exception-3.1", "libstdc++ and libgcc"),
)
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}


def versions(sysroot):
    return {line.split()[0]: line.split()[1] for line in (sysroot / "versions").read_text().splitlines()}


def document(name, version, architecture, sysroot, when, stage, binaries):
    known = versions(sysroot)
    packages = [{"SPDXID": "SPDXRef-tacet", "name": "tacet", "versionInfo": version, "downloadLocation": "NOASSERTION",
                 "filesAnalyzed": False, "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0",
                 "copyrightText": "NOASSERTION", "primaryPackagePurpose": "APPLICATION"}]
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-tacet"}]
    for library in LINKED:
        held = known[library.package]
        packages.append({"SPDXID": f"SPDXRef-{library.name}", "name": library.name, "versionInfo": held, "supplier": "Organization: Debian",
                         "downloadLocation": f"http://deb.debian.org/debian/pool/main/{library.name[0] if not library.name.startswith('lib') else library.name[:4]}/{library.name}/",
                         "filesAnalyzed": False, "licenseConcluded": library.licence, "licenseDeclared": library.licence,
                         "copyrightText": "NOASSERTION", "comment": library.what,
                         "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                           "referenceLocator": f"pkg:deb/debian/{library.package.replace('+', '%2B')}@{held.replace(':', '%3A').replace('+', '%2B')}?arch={DEBIAN[architecture]}&distro=bookworm"}]})
        relations.append({"spdxElementId": "SPDXRef-tacet", "relationshipType": "STATIC_LINK", "relatedSpdxElement": f"SPDXRef-{library.name}"})
    files = []
    for path in binaries:
        data = (stage / path).read_bytes()
        identity = "SPDXRef-file-" + path.rsplit("/", 1)[1].replace("_", "-")
        files.append({"SPDXID": identity, "fileName": f"./{path}", "fileTypes": ["BINARY"], "licenseConcluded": "Apache-2.0",
                      "copyrightText": "NOASSERTION",
                      "checksums": [{"algorithm": "SHA1", "checksumValue": hashlib.sha1(data).hexdigest()},
                                    {"algorithm": "SHA256", "checksumValue": hashlib.sha256(data).hexdigest()}]})
        relations.append({"spdxElementId": "SPDXRef-tacet", "relationshipType": "CONTAINS", "relatedSpdxElement": identity})
    digest = hashlib.sha256("".join(file["checksums"][1]["checksumValue"] for file in files).encode()).hexdigest()
    created = datetime.datetime.fromtimestamp(when, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return json.dumps({"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
                       "documentNamespace": f"https://spdx.org/spdxdocs/{name}-{digest[:32]}",
                       "creationInfo": {"created": created, "creators": [f"Tool: tacet-make-dist-{version}"]},
                       "packages": packages, "files": files, "relationships": relations}, indent=1) + "\n"
