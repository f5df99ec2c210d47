-- How long the successful requests of one name, or in one group, took.
SELECT connecting_us + tls_us + duration_us AS us
  FROM requests WHERE if($parameter = 'group', "group", name) = $given AND succeeded(error_code, status);
