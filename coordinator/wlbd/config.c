#include "coordinator/wlbd/config.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/file.h"
#include "coordinator/db/conninfo.h"
#include "coordinator/wlbd/log.h"

enum { CONFIG_LIMIT_BYTES = 1 << 20 };

enum kind {
	LISTEN,
	CONNINFO,
	SOCKET_PATH,
	YES_NO,
	MILLISECONDS, /* of type int */
	LEASE,        /* likewise, or 0 */
	LEVEL,
	ON_FAULT,
};

struct key {
	const char *name;
	enum kind kind;
	size_t offset;
	size_t size; /* of the field */
	int min;     /* MILLISECONDS, LEASE */
	int max;
	const char *by_default; /* NULL: the field's type has defaults */
};

#define FIELD(name) offsetof(struct wlbd_config, name), sizeof(((struct wlbd_config *)0)->name)
static const struct key keys[] = {
	{"listen", LISTEN, FIELD(listen), 0, 0, "127.0.0.1:8642"},
	{"database", CONNINFO, FIELD(database), 0, 0, "dbname=wlb"},
	{"query_database", CONNINFO, FIELD(query_database), 0, 0, ""},
	{"munge_socket", SOCKET_PATH, FIELD(munge_socket), 0, 0, ""},
	{"private_data", YES_NO, FIELD(private_data), 0, 0, "no"},
	{"avoid_nodes", YES_NO, FIELD(avoid_nodes), 0, 0, "yes"},
	{"node_down", YES_NO, FIELD(node_down), 0, 0, "yes"},
	{"log_level", LEVEL, FIELD(log_level), 0, 0, "info"},
	{"database_timeout_ms", MILLISECONDS, FIELD(database_timeout_ms), 100, 600000, "2000"},
	{"reconnect_grace_ms", MILLISECONDS, FIELD(reconnect_grace_ms), 0, 600000, "2000"},
	{"silence_ms", MILLISECONDS, FIELD(silence_ms), 1000, 3600000, "10000"},
	{"node_down_after_ms", MILLISECONDS, FIELD(node_down_after_ms), 0, 600000, "2000"},
	{"restart_grace_ms", MILLISECONDS, FIELD(restart_grace_ms), 0, 3600000, "15000"},
	{"back_off_ms", MILLISECONDS, FIELD(back_off_ms), 0, 3600000, "5000"},
	{"request_timeout_ms", MILLISECONDS, FIELD(request_timeout_ms), 100, 600000, "30000"},
	{"job_poll_ms", MILLISECONDS, FIELD(job_poll_ms), 100, 3600000, "10000"},
	{"lease_ms", LEASE, FIELD(lease_ms), 2000, 600000, "0"},
	{"on_fault", ON_FAULT, FIELD(on_fault), 0, 0, NULL},
};
enum { KEY_COUNT = sizeof(keys) / sizeof(keys[0]) };

static const char blanks[] = " \t\r";

/* ---- values ---------------------------------------------------------------------------------- */

static int set_text(const struct key *key, const char *value, char *field, struct wlb_error *error)
{
	if (strlen(value) >= key->size)
		return wlb_fail(error, "%s has %zu characters: at most %zu", key->name, strlen(value), key->size - 1);
	strcpy(field, value);
	return 0;
}

/* HOST:PORT and [V6]:PORT. */
static int split_listen(struct wlbd_config *config, struct wlb_error *error)
{
	const char *colon = strrchr(config->listen, ':'), *host = config->listen;
	size_t length = colon != NULL ? (size_t)(colon - host) : 0;
	long port = -1;
	if (colon != NULL && colon[1] != '\0' && colon[1 + strspn(colon + 1, "0123456789")] == '\0')
		port = strtol(colon + 1, NULL, 10);

	if (length > 2 && host[0] == '[' && host[length - 1] == ']') {
		host++;
		length -= 2;
	} else if (length > 0 && memchr(host, ':', length) != NULL) {
		length = 0;
	}
	if (length == 0 || length >= sizeof(config->listen_host) || strcspn(host, blanks) < length || port < 0 ||
	    port > 65535)
		return wlb_fail(error, "listen = '%.100s': must be HOST:PORT, such as 127.0.0.1:8642 or [::1]:8642",
		                config->listen);
	memcpy(config->listen_host, host, length);
	config->listen_host[length] = '\0';
	config->listen_port = (int)port;
	return 0;
}

static int set_conninfo(const struct key *key, const char *value, char *field, struct wlb_error *error)
{
	if (wlb_conninfo_check(value, error) != 0)
		return wlb_fail_in(error, "%s", key->name);
	return set_text(key, value, field, error);
}

static int set_socket_path(const struct key *key, const char *value, char *field, struct wlb_error *error)
{
	if (*value != '\0' && (*value != '/' || strpbrk(value, blanks) != NULL))
		return wlb_fail(error, "%s = '%.100s': must be an absolute path without blanks", key->name, value);
	return set_text(key, value, field, error);
}

static int set_yes_no(const struct key *key, const char *value, bool *field, struct wlb_error *error)
{
	bool yes = strcmp(value, "yes") == 0;
	if (!yes && strcmp(value, "no") != 0)
		return wlb_fail(error, "%s = '%.100s': must be yes or no", key->name, value);
	*field = yes;
	return 0;
}

static int set_milliseconds(const struct key *key, const char *value, int *field, struct wlb_error *error)
{
	char *end;
	errno = 0;
	long number = strtol(value, &end, 10);
	bool is_none = key->kind == LEASE && strcmp(value, "0") == 0;
	if (end == value || *end != '\0' || errno != 0 || (!is_none && (number < key->min || number > key->max)))
		return wlb_fail(error, "%s = '%.100s': must be a whole number from %d to %d%s", key->name, value,
		                key->min, key->max, key->kind == LEASE ? ", or 0: no other wlbd stands by" : "");
	*field = (int)number;
	return 0;
}

static int set_level(const struct key *key, const char *value, int *field, struct wlb_error *error)
{
	static const char *const levels[] = {
		[WLBD_LOG_ERROR] = "error",
		[WLBD_LOG_WARNING] = "warning",
		[WLBD_LOG_INFO] = "info",
		[WLBD_LOG_DEBUG] = "debug",
	};
	for (int i = 0; i < (int)(sizeof(levels) / sizeof(levels[0])); i++) {
		if (strcmp(value, levels[i]) == 0) {
			*field = i;
			return 0;
		}
	}
	return wlb_fail(error, "%s = '%.100s': must be error, warning, info or debug", key->name, value);
}

static int set(const struct key *key, const char *value, struct wlbd_config *config, struct wlb_error *error)
{
	void *field = (char *)config + key->offset;
	switch (key->kind) {
	case LISTEN:
		return set_text(key, value, field, error) == 0 ? split_listen(config, error) : -1;
	case CONNINFO:
		return set_conninfo(key, value, field, error);
	case SOCKET_PATH:
		return set_socket_path(key, value, field, error);
	case YES_NO:
		return set_yes_no(key, value, field, error);
	case MILLISECONDS:
	case LEASE:
		return set_milliseconds(key, value, field, error);
	case LEVEL:
		return set_level(key, value, field, error);
	case ON_FAULT:
		return wlb_on_fault_parse(value, field, error) == 0 ? 0 : wlb_fail_in(error, "%s", key->name);
	}
	return -1;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static const struct key *find_key(const char *name)
{
	for (int i = 0; i < KEY_COUNT; i++)
		if (strcmp(keys[i].name, name) == 0)
			return &keys[i];
	return NULL;
}

static int refuse_key(const char *name, struct wlb_error *error)
{
	char known[512] = "";
	for (int i = 0; i < KEY_COUNT; i++) {
		size_t length = strlen(known);
		snprintf(known + length, sizeof(known) - length, "%s%s", i > 0 ? ", " : "", keys[i].name);
	}
	return wlb_fail(error, "unknown key '%.100s'; the keys are %s", name, known);
}

static char *trim(char *text)
{
	text += strspn(text, blanks);
	size_t length = strlen(text);
	while (length > 0 && strchr(blanks, text[length - 1]) != NULL)
		text[--length] = '\0';
	return text;
}

static bool is_word(const char *text)
{
	return text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")] == '\0';
}

/* `seen` has a bit for each key: two lines with one key are refused, since one of them is a mistake. */
static int apply_line(char *line, struct wlbd_config *config, uint64_t *seen, struct wlb_error *error)
{
	line = trim(line);
	if (*line == '\0' || *line == '#')
		return 0;
	char *equals = strchr(line, '=');
	if (equals != NULL)
		*equals = '\0';
	const char *name = trim(line);
	if (equals == NULL || !is_word(name))
		return wlb_fail(error, "a line is key = value, such as listen = 127.0.0.1:8642; this one, which is not "
		                       "shown since it may have a part of a password, is not");
	const struct key *key = find_key(name);
	if (key == NULL)
		return refuse_key(name, error);
	uint64_t bit = UINT64_C(1) << (key - keys);
	if (*seen & bit)
		return wlb_fail(error, "%s is set twice; keep one line", name);
	*seen |= bit;
	return set(key, trim(equals + 1), config, error);
}

int wlbd_config_parse(const char *name, const char *text, struct wlbd_config *config, struct wlb_error *error)
{
	uint64_t seen = 0;
	*config = (struct wlbd_config){0};
	wlb_on_fault_init(&config->on_fault);
	for (int i = 0; i < KEY_COUNT; i++)
		if (keys[i].by_default != NULL && set(&keys[i], keys[i].by_default, config, error) != 0)
			return -1;
	char *copy = strdup(text);
	if (copy == NULL)
		return wlb_fail(error, "%s: out of memory", name);
	int rc = 0;
	int number = 0;
	for (char *rest = copy, *line = strsep(&rest, "\n"); line != NULL && rc == 0; line = strsep(&rest, "\n")) {
		number++;
		if (apply_line(line, config, &seen, error) != 0)
			rc = wlb_fail_in(error, "%s, line %d", name, number);
	}
	free(copy);
	return rc;
}

const char *wlbd_config_path(void)
{
	const char *named = getenv("WLBD_CONF");
	return named != NULL && *named != '\0' ? named : "/etc/wlb/wlbd.conf";
}

int wlbd_config_load(const char *path, struct wlbd_config *config, struct wlb_error *error)
{
	char *text;
	size_t length;
	if (wlb_file_read(path, CONFIG_LIMIT_BYTES, &text, &length, error) != 0)
		return -1;
	int rc = strlen(text) == length ? wlbd_config_parse(path, text, config, error)
	                                : wlb_fail(error, "%s: has a byte 0 and must be a text", path);
	free(text);
	return rc;
}

/* ---- who may read them ----------------------------------------------------------------------- */

/* Whether it is the account's primary group, and names no other member. */
static bool is_own_group(gid_t gid, const struct passwd *user)
{
	const struct group *group = getgrgid(gid);
	if (user == NULL || user->pw_gid != gid || group == NULL)
		return false;
	for (char **member = group->gr_mem; *member != NULL; member++)
		if (strcmp(*member, user->pw_name) != 0)
			return false;
	return true;
}

static bool is_private(const struct stat *file, uid_t account, const struct passwd *user)
{
	mode_t others = file->st_mode & (S_IRWXG | S_IRWXO);
	if (file->st_uid != 0 && file->st_uid != account)
		return false;
	return others == 0 || (others == S_IRGRP && is_own_group(file->st_gid, user));
}

/* Writes the path of the file from which libpq takes passwords; "" where there is none. */
static void password_file(const struct wlbd_config *config, const struct passwd *user, char *path, size_t size)
{
	wlb_conninfo_passfile(config->database, path, size);
	if (path[0] == '\0' && user != NULL)
		snprintf(path, size, "%s/.pgpass", user->pw_dir);
}

int wlbd_config_check_readers(const char *path, const struct wlbd_config *config, uid_t account,
                              struct wlb_error *warning)
{
	const struct passwd *user = getpwuid(account);
	char passwords[PATH_MAX];
	struct stat file;
	bool has_secret = wlb_conninfo_has_secret(config->database) || wlb_conninfo_has_secret(config->query_database);
	password_file(config, user, passwords, sizeof(passwords));
	if (stat(passwords, &file) == 0 && (file.st_mode & (S_IRWXG | S_IRWXO)) != 0)
		return wlb_fail(warning,
		                "%s has passwords of the database, others than its owner may read it (mode %04o), and "
		                "libpq takes none from it: chmod 600, and change the passwords",
		                passwords, file.st_mode & 07777U);
	if (!has_secret || stat(path, &file) != 0 || is_private(&file, account, user))
		return 0;
	return wlb_fail(
		warning,
		"%s has the database's password, and others than root and wlbd's account may read it (owner uid "
		"%u, mode %04o): chown it to wlbd's account, chmod 600, and change the password",
		path, file.st_uid, file.st_mode & 07777U);
}
