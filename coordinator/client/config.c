#include "coordinator/client/config.h"

#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/conf.h"

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

static int parse_address(struct wlb_client_address *parsed, const char *address, struct wlb_error *error)
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
	if ((size_t)(end - host) >= sizeof(parsed->host))
		return wlb_fail(error, "coordinator '%.60s...': the host has more than %zu bytes", address,
		                sizeof(parsed->host) - 1);
	memcpy(parsed->host, host, (size_t)(end - host));
	parsed->host[end - host] = '\0';
	return copy(parsed->port, sizeof(parsed->port), colon + 1, "port", error);
}

/* Takes the first address of *rest, which is moved behind its comma; NULL: there is no other. */
static int take_address(struct wlb_client_address *parsed, const char **rest, struct wlb_error *error)
{
	static const char blanks[] = " \t";
	char text[sizeof(parsed->host) + sizeof(parsed->port) + 8];
	const char *begin = *rest + strspn(*rest, blanks), *comma = strchr(begin, ',');
	size_t length = comma != NULL ? (size_t)(comma - begin) : strlen(begin);
	while (length > 0 && strchr(blanks, begin[length - 1]) != NULL)
		length--;
	if (length >= sizeof(text))
		return wlb_fail(error, "coordinator '%.60s...': has %zu bytes, at most %zu are allowed", begin, length,
		                sizeof(text) - 1);
	memcpy(text, begin, length);
	text[length] = '\0';
	*rest = comma != NULL ? comma + 1 : NULL;
	return parse_address(parsed, text, error);
}

int wlb_client_config_addresses(struct wlb_client_config *config, const char *addresses, struct wlb_error *error)
{
	struct wlb_client_address list[WLB_COORDINATORS_MAX];
	const char *rest = addresses;
	int count = 0;
	while (rest != NULL) {
		if (count == WLB_COORDINATORS_MAX)
			return wlb_fail(
				error,
				"coordinator '%.100s': names more than %d; name the one that acts and the one that "
				"stands by, such as login1:8642, login2:8642",
				addresses, WLB_COORDINATORS_MAX);
		if (take_address(&list[count++], &rest, error) != 0)
			return -1;
	}
	memcpy(config->coordinators, list, (size_t)count * sizeof(list[0]));
	config->coordinator_count = count;
	return 0;
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

static int take_hook(struct wlb_client_config *config, const char *value, struct wlb_error *error)
{
	config->no_hook = strcmp(value, "no") == 0;
	if (!config->no_hook && strcmp(value, "yes") != 0)
		return wlb_fail(error, "hook '%.60s': must be yes or no", value);
	return 0;
}

/* Takes one line of the file. */
static int take_key(void *context, const char *key, const char *value, struct wlb_error *error)
{
	struct wlb_client_config *config = context;
	if (strcmp(key, "coordinator") == 0)
		return wlb_client_config_addresses(config, value, error);
	if (strcmp(key, "munge_socket") == 0)
		return copy(config->munge_socket, sizeof(config->munge_socket), value, "munge_socket", error);
	if (strcmp(key, "coordinator_user") == 0)
		return wlb_client_config_user(config, value, error);
	if (strcmp(key, "hook") == 0)
		return take_hook(config, value, error);
	if (strcmp(key, "machine") == 0) /* the planner's */
		return 0;
	return wlb_fail(error, "'%.100s': the keys are coordinator, munge_socket, coordinator_user, hook and machine",
	                key);
}

static const char *setting(const char *name)
{
	const char *value = getenv(name);
	return value != NULL && *value != '\0' ? value : NULL;
}

int wlb_client_config_load(struct wlb_client_config *config, struct wlb_error *error)
{
	const char *addresses = setting("WLB_COORDINATOR");
	const char *socket = setting("WLB_MUNGE_SOCKET");
	const char *user = setting("WLB_COORDINATOR_USER");

	*config = (struct wlb_client_config){0};
	if (wlb_conf_read(take_key, config, error) != 0)
		return -1;
	if (addresses != NULL && wlb_client_config_addresses(config, addresses, error) != 0)
		return wlb_fail_in(error, "WLB_COORDINATOR");
	if (user != NULL && wlb_client_config_user(config, user, error) != 0)
		return wlb_fail_in(error, "WLB_COORDINATOR_USER");
	if (config->coordinator_count == 0)
		return wlb_fail(error,
		                "no coordinator is named: set WLB_COORDINATOR=HOST:PORT, or write coordinator = "
		                "HOST:PORT into %s",
		                wlb_conf_path());
	if (socket != NULL)
		return copy(config->munge_socket, sizeof(config->munge_socket), socket, "WLB_MUNGE_SOCKET", error);
	return 0;
}
