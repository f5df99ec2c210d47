-- What queries ask of how a request ended, of how a dial failed, of an address with its port, of the times of a proxy's
-- tries, and of when a server closed a connection, by FIN or RST. When a request succeeded, and the kinds of failure,
-- are the parts of this text that Python has.
CREATE MACRO succeeded(error_code, status) AS $succeeded;
CREATE MACRO failure_of(error, error_kind) AS
    CASE WHEN error_kind IN ($kinds) THEN error_kind
         WHEN error IS NOT NULL OR error_kind IS NOT NULL THEN 'other' END;
CREATE MACRO host_of(address) AS regexp_extract(address, '^\[?(.*?)\]?:\d+$', 1);
CREATE MACRO port_of(address) AS try_cast(regexp_extract(address, ':(\d+)$', 1) AS bigint);
CREATE MACRO seconds_of(tries) AS list_transform(
    list_transform(string_split(tries, ', '), lambda each: try_cast(each AS double)),
    lambda seconds: if(seconds BETWEEN 0 AND 1e9, seconds, NULL)
);
CREATE MACRO server_close_us(fin_us, rst_by, rst_us) AS least(fin_us, if(rst_by = 'server', rst_us, NULL));
