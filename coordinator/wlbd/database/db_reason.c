#include "coordinator/wlbd/database/db_reason.h"

#include <stddef.h>
#include <string.h>

enum { SQLSTATE_LENGTH = 5 };

/* By what an SQLSTATE begins with; the first counts. */
static const struct words {
	const char *sqlstate;
	const char *words;
} all[] = {
	{"25006", "it is read-only"},
	{"28", "its server refuses wlbd's login"},
	{"3D000", "its server has no such database"},
	{"42501", "its server refuses wlbd a permission"},
	{"53100", "its disk is full"},
	{"53200", "its server is out of memory"},
	{"53300", "its server has too many connections"},
	{"53", "its server lacks resources"},
	{"55000", "its server accepts no connection to it"},
	{"57P03", "its server is starting, or in recovery"},
	{"57P04", "its server has no such database"},
	{"57P", "its server ends connections"},
	{"58", "its data are damaged"},
	{"XX001", "its data are damaged"},
	{"XX002", "its data are damaged"},
	{"XX", "its server has an internal error"},
};

const char *wlbd_db_reason_of_state(const char *sqlstate)
{
	for (size_t i = 0; sqlstate != NULL && i < sizeof(all) / sizeof(all[0]); i++)
		if (strncmp(sqlstate, all[i].sqlstate, strlen(all[i].sqlstate)) == 0)
			return all[i].words;
	return "no connection";
}

/* Returns NULL where there is none. The message has SEVERITY:  SQLSTATE: TEXT, where SEVERITY may be translated. */
static const char *find_sqlstate(const char *message)
{
	static const char letters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	for (const char *at = strstr(message, ":  "); at != NULL; at = strstr(at + 1, ":  ")) {
		const char *sqlstate = at + 3;
		if (strspn(sqlstate, letters) == SQLSTATE_LENGTH && sqlstate[SQLSTATE_LENGTH] == ':')
			return sqlstate;
	}
	return NULL;
}

/* Of a server that is read-only libpq says so itself, and so it does where the server asks for a password that it has
 * not. */
const char *wlbd_db_reason_of_message(const char *message)
{
	if (strstr(message, "session is read-only") != NULL)
		return wlbd_db_reason_of_state("25006");
	if (strstr(message, "no password supplied") != NULL)
		return wlbd_db_reason_of_state("28");
	return wlbd_db_reason_of_state(find_sqlstate(message));
}
