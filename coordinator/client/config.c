#include "coordinator/client/config.h"

#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char default_file[] = "/etc/wlb/wlb.conf";

static int copy(char *to, size_t size, const char *text, const char *what, struct wlb_error *error)
{
	size_t length = strlen(text);
	if (length >= size)
		return wlb_fail(error, "%s '%.60s...': has %zu bytes, at most %zu are allowed", what, text, length,
		                size - 1);
	memcpy(to, text, length + 1);
	return 0;
}

static bool port_valid(const char *port)
{
	if (strspn(port, "0123456789") != strlen(port) || strlen(port) < 1 || strlen(port) > 5)
		return false;
	int number = atoi(port);
	return number >= 1 && number <= 65535;
}

int wlb_client_config_address(struct wlb_client_config *config, const char *address, struct wlb_error *error)
{
	const char *colon = strrchr(address, ':');
	bool bracketed = address[0] == '[';
	const char *host = bracketed ? address + 1 : address;
	const char *end = colon;

	if (bracketed && colon != NULL && colon > address && colon[-1] == ']')
		end = colon - 1;
	else if (bracketed || (colon != NULL && memchr(address, ':', (size_t)(colon - address)) != NULL))
		colon = NULL; /* "[v6" without "]:", or a bare v6 address: where the port begins is ambiguous */
	if (colon == NULL || end == host || !port_valid(colon + 1))
		return wlb_fail(error, "coordinator '%.100s': must be HOST:PORT, such as login1:8642 or [fd00::1]:8642",
		                address);
	if ((size_t)(end - host) >= sizeof(config->host))
		return wlb_fail(error, "coordinator '%.60s...': the host has more than %zu bytes", address,
		                sizeof(config->host) - 1);
	memcpy(config->host, host, (size_t)(end - host));
	config->host[end - host] = '\0';
	return copy(config->port, sizeof(config->port), colon + 1, "port", error);
}

static bool is_uid(const char *text, uid_t *uid)
{
	char *end;
	errno = 0;
	unsigned long number = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || number >= UINT32_MAX)
		return false;
	*uid = (uid_t)number;
	return true;
}

int wlb_client_config_user(struct wlb_client_config *config, const char *user, struct wlb_error *error)
{
	struct passwd entry, *found = NULL;
	char buffer[4096];
	uid_t uid = 0;
	if (!is_uid(user, &uid) && strcmp(user, "root") != 0) {
		if (getpwnam_r(user, &entry, buffer, sizeof(buffer), &found) != 0 || found == NULL)
			return wlb_fail(error,
			                "coordinator_user '%.60s': this host knows no such user; name the account that "
			                "wlbd runs as, or its number",
			                user);
		uid = entry.pw_uid;
	}
	config->coordinator_uid = uid;
	return copy(config->coordinator_user, sizeof(config->coordinator_user), user, "coordinator_user", error);
}

/* Parses one line of the file, without its newline. Returns 0 also for keys of other programs. */
static int apply_line(struct wlb_client_config *config, char *line, struct wlb_error *error)
{
	static const char blank[] = " \t\r";
	line[strcspn(line, "#")] = '\0';
	line += strspn(line, blank);
	if (*line == '\0')
		return 0;
	char *equals = strchr(line, '=');
	if (equals == NULL)
		return wlb_fail(error, "'%.100s': a line is KEY = VALUE, such as coordinator = login1:8642", line);
	char *value = equals + 1 + strspn(equals + 1, blank);
	size_t length = strlen(value);
	while (length > 0 && strchr(blank, value[length - 1]) != NULL)
		value[--length] = '\0';
	*equals = '\0';
	line[strcspn(line, blank)] = '\0';
	if (strcmp(line, "coordinator") == 0)
		return wlb_client_config_address(config, value, error);
	if (strcmp(line, "munge_socket") == 0)
		return copy(config->munge_socket, sizeof(config->munge_socket), value, "munge_socket", error);
	if (strcmp(line, "coordinator_user") == 0)
		return wlb_client_config_user(config, value, error);
	return wlb_fail(error, "'%.100s': the keys are coordinator, munge_socket and coordinator_user", line);
}

static int read_lines(struct wlb_client_config *config, FILE *file, const char *path, struct wlb_error *error)
{
	char line[1024];
	for (int number = 1; fgets(line, sizeof(line), file) != NULL; number++) {
		line[strcspn(line, "\n")] = '\0';
		if (apply_line(config, line, error) != 0)
			return wlb_fail_in(error, "file %s, line %d", path, number);
	}
	return 0;
}

/* With `needed` it is an error if the file is missing. */
static int read_file(struct wlb_client_config *config, const char *path, bool needed, struct wlb_error *error)
{
	FILE *file = fopen(path, "re");
	if (file == NULL && errno == ENOENT && !needed)
		return 0;
	if (file == NULL)
		return wlb_fail(error, "file %s: cannot be opened: %s", path, strerror(errno));
	int rc = read_lines(config, file, path, error);
	fclose(file);
	return rc;
}

static const char *setting(const char *name)
{
	const char *value = getenv(name);
	return value != NULL && *value != '\0' ? value : NULL;
}

int wlb_client_config_load(struct wlb_client_config *config, struct wlb_error *error)
{
	const char *address = setting("WLB_COORDINATOR");
	const char *socket = setting("WLB_MUNGE_SOCKET");
	const char *user = setting("WLB_COORDINATOR_USER");
	const char *named = setting("WLB_CONF");
	const char *path = named != NULL ? named : default_file;

	*config = (struct wlb_client_config){0};
	if (read_file(config, path, named != NULL, error) != 0)
		return -1;
	if (address != NULL && wlb_client_config_address(config, address, error) != 0)
		return wlb_fail_in(error, "WLB_COORDINATOR");
	if (user != NULL && wlb_client_config_user(config, user, error) != 0)
		return wlb_fail_in(error, "WLB_COORDINATOR_USER");
	if (config->host[0] == '\0')
		return wlb_fail(error,
		                "no coordinator is named: set WLB_COORDINATOR=HOST:PORT, or write coordinator = "
		                "HOST:PORT into %s",
		                path);
	if (socket != NULL)
		return copy(config->munge_socket, sizeof(config->munge_socket), socket, "WLB_MUNGE_SOCKET", error);
	return 0;
}
