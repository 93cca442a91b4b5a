#!/usr/bin/env bash
# Prints which libraries an installed fleetrun contains, as SPDX 2.3 in JSON: those in lib/fleetrun, and those that are compiled into
# the programs, with the versions of this machine's Debian packages.
#
#   scripts/sbom.sh FOLDER        FOLDER: what `cmake --install`, a wheel or a tarball holds: bin, lib/fleetrun
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

[ $# -eq 1 ] && [[ $1 != -* ]] || die "give the folder of an installation: scripts/sbom.sh FOLDER"
folder=$1
[[ $folder == /* ]] || folder=$OLDPWD/$folder
[ -e "$folder/bin/fleetrun" ] || die "$1 has no bin/fleetrun; give the folder of an installation"
version=$(cat VERSION)

# Linked into the static fleetrun, or headers that are compiled into all programs.
compiled_in=(libgrpc++-dev libprotobuf-dev libabsl-dev libssl-dev libc-ares-dev libre2-dev zlib1g-dev libspdlog-dev libfmt-dev
             libcli11-dev nlohmann-json3-dev libboost1.74-dev)

# Lines "RELATIONSHIP PACKAGE VERSION ARCHITECTURE".
components() {
  local triplet names=() packages=()
  triplet=$(gcc -print-multiarch)
  mapfile -t names < <(find "$folder/lib/fleetrun" -name 'lib*.so.*' -printf '%f\n' 2>/dev/null)
  mapfile -t packages < <(dpkg-query -S "${names[@]/#/"/lib/$triplet/"}" "${names[@]/#/"/usr/lib/$triplet/"}" "${names[@]/#/"/usr/lib/"}" \
    2>/dev/null | sed 's/: .*//' | sort -u)
  dpkg-query -W -f='STATIC_LINK ${Package} ${Version} ${Architecture}\n' "${compiled_in[@]}" 2>/dev/null || true
  [ ${#packages[@]} -eq 0 ] || dpkg-query -W -f='DYNAMIC_LINK ${Package} ${Version} ${Architecture}\n' "${packages[@]}"
}
listed=$(components | LC_ALL=C sort -u)
[ -n "$listed" ] || die "no library of $1 is of a Debian package of this machine: make the list where fleetrun was built"
created=$(TZ=UTC date -d "@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}" +%Y-%m-%dT%H:%M:%SZ)

awk -v version="$version" -v created="$created" -v id="$(sha256sum <<<"$version $listed" | cut -c1-16)" '
  function package(spdx, name, number, rest) {
    packages = packages (packages ? ",\n" : "") sprintf("    {\"SPDXID\": \"%s\", \"name\": \"%s\", \"versionInfo\": \"%s\", " \
      "\"downloadLocation\": \"NOASSERTION\", \"filesAnalyzed\": false%s}", spdx, name, number, rest)
  }
  function relationship(from, kind, to) {
    relationships = relationships (relationships ? ",\n" : "") sprintf("    {\"spdxElementId\": \"%s\", " \
      "\"relationshipType\": \"%s\", \"relatedSpdxElement\": \"%s\"}", from, kind, to)
  }
  BEGIN {
    package("SPDXRef-fleetrun", "fleetrun", version, "")
    relationship("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-fleetrun")
  }
  {
    spdx = "SPDXRef-" $2
    gsub(/\+/, "plus", spdx)
    purl = $2 "@" $3
    gsub(/\+/, "%2B", purl)
    if (!seen[spdx]++)
      package(spdx, $2, $3, sprintf(", \"supplier\": \"Organization: Debian\", \"externalRefs\": [{\"referenceCategory\": " \
        "\"PACKAGE-MANAGER\", \"referenceType\": \"purl\", \"referenceLocator\": \"pkg:deb/debian/%s?arch=%s\"}]", purl, $4))
    relationship("SPDXRef-fleetrun", $1, spdx)
  }
  END {
    printf "{\n  \"spdxVersion\": \"SPDX-2.3\",\n  \"dataLicense\": \"CC0-1.0\",\n  \"SPDXID\": \"SPDXRef-DOCUMENT\",\n"
    printf "  \"name\": \"fleetrun-%s\",\n  \"documentNamespace\": \"https://spdx.org/spdxdocs/fleetrun-%s-%s\",\n", version, version, id
    printf "  \"creationInfo\": {\"created\": \"%s\", \"creators\": [\"Tool: fleetrun-sbom\"]},\n", created
    printf "  \"packages\": [\n%s\n  ],\n  \"relationships\": [\n%s\n  ]\n}\n", packages, relationships
  }' <<<"$listed"
