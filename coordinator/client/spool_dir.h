/*
 * The directory with the files of a job: its spools (spool.h), and what `wlb run` keeps for the job's next start. It is
 * a directory of the job's owner to which nobody else can write. Another account could otherwise hold the run by what
 * it puts there, or take its record away.
 *
 * That is the directory that is named (WLB_SPOOL_DIR, --spool-dir), else .wlb in the submit directory. Where it is
 * another account's, or others may write to it, it is .wlb-UID instead: in the named directory, or beside .wlb. A named
 * directory may be a link. The two others are made here, are no links, and lose the permissions of other accounts.
 *
 * What is opened in it later is opened by its path. Who may write to a directory above it can rename it and put another
 * in its place: so each file is opened by common/own_file.h, too.
 */
#ifndef COORDINATOR_CLIENT_SPOOL_DIR_H
#define COORDINATOR_CLIENT_SPOOL_DIR_H

#include <limits.h>
#include <sys/types.h>

#include "libwlb/wlb.h"

enum { WLB_SPOOL_DIRS = 2 };

/* Sets the directories in which a job of `owner` may have its files; NULL or "": not named, not known. Returns their
 * number, 0 where none follows. */
int wlb_spool_dir_names(const char *named, const char *submitted, uid_t owner, char names[WLB_SPOOL_DIRS][PATH_MAX]);

/* Finds or makes that of the effective user: of `named`, or where that is NULL of WLB_SPOOL_DIR, SLURM_SUBMIT_DIR and
 * the current directory. Returns 0 with its absolute path; -1 with the reason and the remedy where others have both.
 * Where it cannot be made (no permission, a full disk), 0 too: what is written to it fails then. It is asked once for
 * each start of a job: who opens files later takes the path, whatever has become of the directory. */
int wlb_spool_dir_choose(const char *named, char dir[PATH_MAX], struct wlb_error *error);

#endif
