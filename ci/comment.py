#!/usr/bin/env python3
"""comment.py FILE URL NUMBER writes a comment, or changes the one that it wrote before.

URL is that of the issues or merge requests of a repository in GitHub's or GitLab's API, NUMBER one of them. The token
is $TOKEN; $GITLAB_CI says which API it is. A token that may not comment is a warning: the job has measured all the same.
"""
import json
import os
import sys
import urllib.error
import urllib.request

MARK = "<!-- llmparity -->"  # invisible, at the end of a line: by it the comment is found again
GITLAB = bool(os.environ.get("GITLAB_CI"))


def call(method, url, body=None):
    headers = {"Content-Type": "application/json"}
    if GITLAB:
        headers["PRIVATE-TOKEN"] = os.environ["TOKEN"]
    else:
        headers |= {"Authorization": "Bearer " + os.environ["TOKEN"], "Accept": "application/vnd.github+json"}
    data = None if body is None else json.dumps({"body": body}).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=30) as answer:
        return json.load(answer)


def comments(url):
    page = 1
    while found := call("GET", f"{url}?per_page=100&page={page}"):
        yield from found
        page += 1


def main():
    file, url, number = sys.argv[1:]
    if not number.isdecimal():
        sys.exit(f"comment.py: not a number: {number!r}")
    with open(file, encoding="utf-8") as text:
        body = text.read().rstrip() + " " + MARK
    every = f"{url}/{number}/" + ("notes" if GITLAB else "comments")
    try:
        for old in comments(every):
            if old["body"].rstrip().endswith(MARK):
                one = f"{every}/{old['id']}" if GITLAB else f"{url}/comments/{old['id']}"
                call("PUT" if GITLAB else "PATCH", one, body)
                return
        call("POST", every, body)
    except urllib.error.HTTPError as error:
        if error.code not in (401, 403):
            raise
        print(("" if GITLAB else "::warning::") + f"the token may not comment: {error}")


if __name__ == "__main__":
    main()
