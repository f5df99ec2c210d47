-- What the fields of a declared log mean. A number since 1970 shows its unit by its size; a text is ISO 8601, with a
-- point or a comma before the fraction. A duration may bring its unit along. How exact a time is, its fraction shows,
-- but no record is finer than a millisecond.
CREATE MACRO epoch_unit_us(number) AS
    CASE WHEN number < 1e11 THEN 1e6 WHEN number < 1e14 THEN 1e3 WHEN number < 1e17 THEN 1.0 ELSE 0.001 END;
CREATE MACRO moment_us(told) AS
    coalesce(if(try_cast(told AS double) BETWEEN 1 AND 4e18,
                (try_cast(told AS decimal(38, 9)) * epoch_unit_us(try_cast(told AS double))::decimal(18, 3))::bigint,
                NULL),
             if(try_cast(told AS double) IS NULL,
                epoch_us(try_cast(regexp_replace(told, '(\d),(\d)', '\1.\2') AS timestamptz)), NULL));
CREATE MACRO resolution_us(told) AS
    greatest(CASE WHEN try_cast(told AS double) IS NULL THEN 1e6 ELSE epoch_unit_us(try_cast(told AS double)) END
             / 10 ** least(len(regexp_extract(told, '[.,](\d+)', 1)), 6), 1000);
CREATE MACRO duration_us(told, unit_us) AS
    CASE WHEN try_cast(regexp_extract(told, '^[0-9.]+') AS double) BETWEEN 0 AND 1e15
         THEN (try_cast(regexp_extract(told, '^[0-9.]+') AS double)
               * CASE regexp_extract(told, '^[0-9.]+\s*(\D*)$', 1)
                      WHEN 's' THEN 1e6 WHEN 'ms' THEN 1e3 WHEN 'us' THEN 1.0 WHEN 'µs' THEN 1.0
                      WHEN 'ns' THEN 0.001 ELSE unit_us END)::bigint END;
CREATE MACRO client_port_of(client) AS
    try_cast(regexp_extract(client, '^(?:[^:]+|\[.*\]):(\d+)$', 1) AS bigint);
CREATE MACRO client_host_of(client) AS
    regexp_replace(if(client_port_of(client) IS NULL, client,
                      regexp_extract(client, '^\[?(.*?)\]?:\d+$', 1)), '^::ffff:', '');
CREATE MACRO path_of(url) AS nullif(regexp_replace(url, '^\w+://[^/]*|[?#].*$', '', 'g'), '');
-- A log may name a server by its host's name, and may have a whole URL.
CREATE MACRO address_of(upstream, hosts, addresses) AS
    CASE WHEN list_contains(hosts, host_of(regexp_replace(upstream, '^\w+://|/.*$', '', 'g')))
         THEN addresses[list_position(hosts, host_of(regexp_replace(upstream, '^\w+://|/.*$', '', 'g')))]
              || ':' || port_of(regexp_replace(upstream, '^\w+://|/.*$', '', 'g'))
         WHEN regexp_matches(upstream, '^(\d+\.\d+\.\d+\.\d+|\[[0-9a-f:]+\]):\d+$') THEN upstream END;
