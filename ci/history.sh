#!/bin/sh
# history.sh FOLDER BRANCH COMMIT CONTROL SITE FILE REMOTE adds a run to the history in a branch of REMOTE, and pushes it.
# FILE gets what changed; SITE the pages, unless it is empty. It ends with 3 if there is a regression that nobody
# acknowledged.
set -eu
folder=$1 branch=$2 commit=$3 control=$4 site=$5 file=$6 remote=$7
ref=refs/heads/$branch

# Another job may push between our fetch and push. Its branch is taken then, and the run added to it.
tries=0
while :; do
	found=0
	git ls-remote --exit-code "$remote" "$ref" > /dev/null || found=$?
	case $found in
	0) git fetch --quiet "$remote" "+$ref:$ref" ;;
	2) ;; # this is the first run
	*) exit 1 ;;
	esac
	llmparity history add "$folder" --store "git:$branch" --commit "$commit" ${control:+--control "$control"}
	git push --quiet "$remote" "$ref:$ref" && break
	tries=$((tries + 1))
	if [ $tries -ge 5 ]; then
		echo "history.sh: $branch could not be pushed; may the token write?" >&2
		exit 1
	fi
	sleep $tries
done

code=0
llmparity history check --store "git:$branch" --markdown > "$file" || code=$?
if [ -n "$site" ]; then llmparity history site --store "git:$branch" -o "$site"; fi
exit $code
