insert into product (id, name, description, price_cents)
select n,
       (array['Lamp', 'Chair', 'Table', 'Shelf', 'Clock', 'Mirror', 'Carpet', 'Vase'])[1 + n % 8] || ' ' || n,
       (array['oak', 'steel', 'linen', 'glass', 'brass'])[1 + n % 5] || ', made by hand, number ' || n || ' of its series',
       500 + (n * 37) % 20000
from generate_series(1, 5000) n
on conflict do nothing;
